# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.torch is made of."""
