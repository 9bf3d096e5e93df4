/* SPDX-License-Identifier: BSD-3-Clause */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "sarissa/sarissa.h"

enum { ERROR_NODES = 256 };

/* The node's words, and before them the longest name. */
static _Thread_local char error_detail[512];
static _Thread_local uint32_t error_node[ERROR_NODES];
static _Thread_local unsigned error_nodes;

/* The meaning of our codes here, where strerror() would speak of files and sockets. */
static const struct {
	int error;
	const char *text;
} error_texts[] = {
	{0, "success"},
	{ENOENT, "no such object"},
	{ETIMEDOUT, "the time is over"},
	{EEXIST, "an object with this id exists already"},
	{ENOSPC, "the store is full"},
	{EFBIG, "the object is larger than the store"},
	{ECONNREFUSED, "no node runs here"},
	{ENOTCONN, "the node has gone away"},
	{ESTALE, "the object was deleted or evicted"},
	{ENODATA, "a part of it is lost"},
	{ERANGE, "the object has no such bytes, or the clock of a node is more than an hour ahead"},
	{ERESTART, "another generation takes the object's place"},
	{EMFILE, "too many buffers in use on one connection"},
	{EAGAIN, "the node has too many requests at hand"},
	{EHOSTUNREACH, "a part of the directory does not answer"},
	{ETIME, "it comes too late for its round"},
	{EPROTO, "the node's answer makes no sense"},
	{ESHUTDOWN, "the connection is being closed"},
	{EPROTONOSUPPORT, "the node speaks another protocol version"},
	{EINVAL, "an argument is invalid"},
	{EDQUOT, "this user has as many bytes as it may have"},
	{ENAMETOOLONG, "the name is too long"},
	{ENOMEM, "out of memory"},
	{EIO, "a disk of the node fails"},
	{EACCES, "this user may not open the node's socket"},
	{EPERM, "this user may not ask for that"},
	{ECANCELED, "it was cancelled"},
	{EBUSY, "an operation of a queue has it"},
	{ENETUNREACH, "no switch answers there"},
	{ENOTSUP, "that is not supported"},
	{ENODEV, "no CUDA driver, or no such GPU"},
	{EREMOTEIO, "the CUDA driver reports an error"},
	{E2BIG, "it does not fit"},
};

const char *sar_strerror(int error)
{
	int positive = error < 0 ? -error : error;
	for (size_t i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++)
		if (error_texts[i].error == positive)
			return error_texts[i].text;
	const char *text = strerrordesc_np(positive);
	return text ? text : "unknown error";
}

const char *sar_error_detail(void)
{
	return error_detail;
}

int sar_error_nodes(uint32_t *out, unsigned room)
{
	for (unsigned i = 0; i < room && i < error_nodes; i++)
		out[i] = error_node[i];
	return (int)error_nodes;
}

void error_keep(struct error_kept *out)
{
	_Static_assert(sizeof(out->words) == sizeof(error_detail), "all of them");
	memcpy(out->words, error_detail, sizeof(out->words));
	out->nodes = error_nodes;
}

void error_restore(const struct error_kept *kept)
{
	memcpy(error_detail, kept->words, sizeof(kept->words));
	error_nodes = kept->nodes; /* no queue names any */
}

void error_set_node(unsigned node)
{
	if (error_nodes < ERROR_NODES)
		error_node[error_nodes++] = node;
}

int error_set(int error, const char *format, ...)
{
	char text[sizeof(error_detail)]; /* the former words may be part of the new ones */
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(error_detail, text, sizeof(text));
	error_nodes = 0;
	return error;
}

/* In quotes, as the node writes it: characters that would write over the terminal become '?'. */
static void error_quote(const char *name, char out[SAR_NAME_MAX + 3])
{
	size_t length = 0;
	out[length++] = '\'';
	for (; *name && length <= SAR_NAME_MAX; name++)
		out[length++] = (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name;
	out[length++] = '\'';
	out[length] = '\0';
}

int error_name(int error, const uint8_t id[], const char *name)
{
	char quoted[SAR_NAME_MAX + 3] = "", hex[3 + 2 * SAR_ID_BYTES + 1] = "id:";
	char text[sizeof(error_detail) + SAR_NAME_MAX + 5];
	for (int i = 0; i < SAR_ID_BYTES; i++)
		snprintf(hex + 3 + 2 * i, 3, "%02x", id[i]);
	if (name && *name)
		error_quote(name, quoted);
	/* The node knows names that we do not, and begins with them, or it says the id. */
	if ((*error_detail == '\'' && !*quoted) || strstr(error_detail, hex + 3) ||
	    (*quoted && strstr(error_detail, quoted)))
		return error;
	snprintf(text, sizeof(text), "%s: %s", *quoted ? quoted : hex, error_detail);
	memcpy(error_detail, text, sizeof(error_detail) - 1);
	return error;
}

int error_set_text(int error, const char *text, unsigned bytes)
{
	size_t length = strnlen(text, bytes);
	if (length == 0)
		return error_set(error, "%s", sar_strerror(error));
	return error_set(error, "%.*s", (int)length, text);
}
