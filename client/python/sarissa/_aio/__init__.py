# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.aio is made of."""
