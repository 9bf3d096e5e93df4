# SPDX-License-Identifier: BSD-3-Clause
"""What Node.communicator() is made of."""
