/* SPDX-License-Identifier: MIT */
/* Making errors: latched statuses, and the records that error arrays carry. */
#ifndef TN_CORE_ERROR_H
#define TN_CORE_ERROR_H

#include <tanso/base.h>
#include "core/plugin.h"

TN__PLUGIN_BEGIN
/*
 * Latches an error in this thread (if none is latched) and returns its code. The message becomes
 * "<operation>: <formatted text> (<file>:<line>)", with the caller's place noted by tn__at.
 * The text says what was expected, what came, and what to do. Without memory for the record the code latched and
 * returned is TN_ERR_MEMORY.
 */
tn_status tn__fail(tn_status code, const char *operation, const char *format, ...) TN_PRINTF(3, 4);
/* TN_ERR_VALUE for an argument that is NULL: "expected `what`, got NULL". */
tn_status tn__fail_null(const char *operation, const char *what);
/* TN_ERR_MEMORY for an operation that wanted `bytes`. */
tn_status tn__fail_memory(const char *operation, size_t bytes);

/*
 * First in a public function that no macro notes the place for, since gcc does not tell of a dropped status
 * (TN_MUST_CHECK) where the call stands in a macro of an installed header: the place noted last is another call's.
 */
#define TN__NO_PLACE() tn__at(NULL, 0)

/* Whether an error is latched; and notes that somebody has been told of it, by other means than tn_ok, tn_error and
 * tn_error_code, which note so themselves. What nobody was told of is printed when the thread or the process ends. */
bool tn__latched(void);
void tn__error_seen(void);
/* Prints it now, at the end of the process, where that may be the last moment to do so. */
void tn__error_tell(void);

/* The file of the call that is under way, as tn__at noted it, and the line; NULL: not known. */
const char *tn__caller(int *line);

/* A shared, immutable error record, as error arrays and failed objects carry. */
typedef struct tn__error tn__error;
/* Makes a record and latches it. Never NULL: without memory, a static record. The caller owns one reference. */
tn__error *tn__error_new(tn_status code, const char *operation, const char *format, ...) TN_PRINTF(3, 4);
/* Makes a record without latching it: for an error that may never be met. */
tn__error *tn__error_record(tn_status code, const char *operation, const char *format, ...) TN_PRINTF(3, 4);
/* The record of the thread's most recent failure (not only the first), borrowed: retain it to keep it. Never NULL. */
tn__error *tn__error_last(void);
/* Takes the thread's latched error, the first since it was clean, out of the latch: a reference, or NULL if there is
 * none. What must go on after an error puts it aside so, and raises it again in the end. */
tn__error *tn__error_take(void);
/* The static records of exhausted memory, and of objects that were freed (core/object.h). */
tn__error *tn__error_no_memory(void);
tn__error *tn__error_freed(void);
tn__error *tn__error_retain(tn__error *error);
void tn__error_release(tn__error *error);
tn_status tn__error_status(const tn__error *error);
const char *tn__error_message(const tn__error *error);
/* Latches an existing record again and returns its code: when an error array is used where a status is due. */
tn_status tn__error_raise(tn__error *error);

/* The valid name nearest to `word` by edit distance, for "did you mean" messages; NULL if none is near. */
const char *tn__nearest_name(const char *word, const char *const *names, int count);
TN__PLUGIN_END

#endif
