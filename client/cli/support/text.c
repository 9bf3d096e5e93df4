/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <arpa/inet.h>
#include <string.h>

char *text_size(char out[TEXT_BYTES], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned unit = 0;
	while (value >= 1023.95 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(out, TEXT_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return out;
}

char *text_used(char out[TEXT_BYTES], uint64_t used, uint64_t all)
{
	char part[TEXT_BYTES], whole[TEXT_BYTES];
	double share = all > 0 ? 100.0 * (double)used / (double)all : 0;
	snprintf(out, TEXT_BYTES, "%.16s of %.16s used (%.0f%%)", text_size(part, used),
		 text_size(whole, all), share);
	return out;
}

char *text_rate(char out[TEXT_BYTES], uint64_t bytes, uint64_t over_ns)
{
	char size[TEXT_BYTES];
	double second = (double)bytes * 1e9 / (double)over_ns;
	snprintf(out, TEXT_BYTES, "%.20s/s", text_size(size, (uint64_t)second));
	return out;
}

char *text_duration(char out[TEXT_BYTES], uint64_t ns)
{
	if (ns < 1000)
		snprintf(out, TEXT_BYTES, "%u ns", (unsigned)ns);
	else if (ns < 1000000)
		snprintf(out, TEXT_BYTES, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(out, TEXT_BYTES, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(out, TEXT_BYTES, "%.2f s", (double)ns / 1e9);
	return out;
}

char *text_clock(char out[TEXT_BYTES], uint64_t seconds)
{
	unsigned long long h = seconds / 3600;
	unsigned m = (unsigned)(seconds / 60 % 60), s = (unsigned)(seconds % 60);
	if (h > 0)
		snprintf(out, TEXT_BYTES, "%llu:%02u:%02u", h, m, s);
	else
		snprintf(out, TEXT_BYTES, "%u:%02u", m, s);
	return out;
}

char *text_id(char out[TEXT_BYTES], const uint8_t bytes[16])
{
	for (int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return out;
}

char *text_ip(char out[TEXT_BYTES], const uint8_t ip[16])
{
	static const uint8_t v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	if (memcmp(ip, v4, sizeof(v4)) == 0)
		inet_ntop(AF_INET, ip + 12, out, TEXT_BYTES);
	else
		inet_ntop(AF_INET6, ip, out, TEXT_BYTES);
	return out;
}

char *text_endpoint(char out[TEXT_BYTES], const uint8_t ip[16], unsigned port)
{
	char host[TEXT_BYTES];
	text_ip(host, ip);
	snprintf(out, TEXT_BYTES, strchr(host, ':') ? "[%.46s]:%u" : "%.46s:%u", host, port);
	return out;
}

/* Least second byte, greatest second byte and length by the first byte: RFC 3629, section 4. */
size_t text_utf8(const char *text, size_t length)
{
	const uint8_t *p = (const uint8_t *)text;
	uint8_t low = 0x80, high = 0xbf;
	size_t need;
	if (length == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		need = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		need = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (length < need || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return need;
}

int text_safe(FILE *file, const char *text)
{
	int columns = 0;
	for (size_t left = strlen(text); left > 0;) {
		size_t n = text_utf8(text, left);
		uint8_t first = (uint8_t)text[0];
		/* C1 controls (U+0080..U+009F) move a cursor as well */
		bool control = first < 0x20 || first == 0x7f ||
			       (n == 2 && first == 0xc2 && (uint8_t)text[1] < 0xa0);
		if (n == 0 || control) {
			n = n ? n : 1;
			for (size_t i = 0; i < n; i++)
				columns += fprintf(file, "\\x%02x", (uint8_t)text[i]);
		} else {
			fwrite(text, 1, n, file);
			columns++;
		}
		text += n;
		left -= n;
	}
	return columns;
}
