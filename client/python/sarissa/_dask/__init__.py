# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.dask is made of."""
