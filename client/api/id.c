/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sar_id_of and sar_version.
 */
#include <string.h>
#include <xxhash.h>
#include "sarissa/sarissa.h"

sar_id sar_id_of(const void *key, size_t key_bytes)
{
	XXH128_canonical_t canonical;
	sar_id id;
	XXH128_canonicalFromHash(&canonical, XXH3_128bits(key_bytes ? key : "", key_bytes));
	memcpy(id.bytes, canonical.digest, sizeof(id.bytes));
	return id;
}

const char *sar_version(void)
{
	return SARISSA_VERSION;
}
