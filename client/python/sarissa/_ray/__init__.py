# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.ray is made of. Nothing of it is imported before sarissa.ray is."""
