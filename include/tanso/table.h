/* SPDX-License-Identifier: MIT */
/*
 * Text as data: lists of words and of lines, words as numbers, and tables (CSV) whose columns have types of their own.
 *
 *     tn_table *table = tn_load_table("mushrooms.csv");
 *     tn_array *x = tn_table_array(table, 1, TN_TABLE_END, TN_FLOAT32), *t = tn_table_column(table, "class");
 *
 * Constructors never return NULL; an object that could not be made has a status, and its error is latched. Text is
 * UTF-8, or any bytes without NUL; lines end in LF or CR LF.
 */
#ifndef TANSO_TABLE_H
#define TANSO_TABLE_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- words ---- */

/* A list of texts, numbered from 0: a vocabulary, or lines. */
typedef struct tn_words tn_words;
TN_API tn_words *tn_words_new(void);
/* NULL is ignored. */
TN_API void tn_words_free(tn_words *words);
TN_API tn_status tn_words_status(const tn_words *words);
TN_API int64_t tn_words_count(const tn_words *words);
/* Text i; negative from the end. "" with TN_ERR_INDEX latched if it is not there. The list's, until it is freed. */
TN_API const char *tn_words_get(const tn_words *words, int64_t i);
/* The first number of a text; -1 if it is not in the list. */
TN_API int64_t tn_words_find(const tn_words *words, const char *word);
/* The number of a word, which is put at the end of the list if it is not in it; -1 with a latched error. */
TN_API int64_t tn_words_add(tn_words *words, const char *word);

typedef struct tn_encode_opts {
    const char *_;
    const char *end;     /* a word that stands for the end of each line, "<eos>"; default: none does */
    const char *unknown; /* a word of the list that stands for all that are not in it; default: they are added to it */
} tn_encode_opts;
/* Words, between white space, by their numbers in the list: (words) int64, a new array of the innermost scope. An
 * unknown word that is not in the list itself is TN_ERR_NAME. */
TN_API tn_array *tn_encode_with(const char *text, tn_words *words, const tn_encode_opts *opts);
/* The same of a file. */
TN_API tn_array *tn_load_encoded_with(const char *path, tn_words *words, const tn_encode_opts *opts);

typedef struct tn_lines_opts {
    const char *_;
    bool (*keep)(const char *line, void *user); /* whether a line is taken; default: all are */
    void *user;
} tn_lines_opts;
/* The lines of a file, without their ends. */
TN_API tn_words *tn_load_lines_with(const char *path, const tn_lines_opts *opts);

/* ---- tables ---- */

typedef struct tn_table tn_table;

/* What a column holds: bool, integers or floats, or words (TN_WORDS). */
#define TN_WORDS TN_DTYPE_DEFAULT
typedef struct tn_column_type {
    const char *name; /* of the column */
    tn_dtype dtype;
} tn_column_type;
/* .types = TN_COLUMN_TYPES({"age", TN_FLOAT32}, {"zip", TN_WORDS}): the list that the option wants, ended by an empty
 * name. Lives to the end of the block, in C++ of the full expression. */
#ifdef __cplusplus
#define TN_COLUMN_TYPES(...) (std::initializer_list<tn_column_type>{__VA_ARGS__, {}}.begin())
#else
#define TN_COLUMN_TYPES(...) ((const tn_column_type[]){__VA_ARGS__, {0}})
#endif

typedef struct tn_table_opts {
    const char *_;
    char delimiter;              /* default: a comma */
    bool no_header;              /* columns are called "0", "1", ..., instead of by the first line */
    const tn_column_type *types; /* of some columns; default, of each: int64 if all its fields are integers, float64 if
                                    all are numbers or empty (NaN), else words */
} tn_table_opts;
/*
 * CSV as spreadsheets write it (RFC 4180): fields may stand in double quotes, in which the delimiter, ends of lines and
 * doubled quotes belong to the text; blank lines are left out. All lines have the fields of the first, else
 * TN_ERR_FORMAT with the line, as for a field that is none of its column's type.
 */
TN_API tn_table *tn_load_table_with(const char *path, const tn_table_opts *opts);
/* NULL is ignored. */
TN_API void tn_table_free(tn_table *table);
TN_API tn_status tn_table_status(const tn_table *table);
TN_API int64_t tn_table_rows(const tn_table *table);
TN_API int tn_table_columns(const tn_table *table);
/* The name of column i, negative from the end; "" with TN_ERR_INDEX latched. */
TN_API const char *tn_table_name(const tn_table *table, int i);
/* A column as a new array (rows) of the innermost scope, of its type; words as int64, their numbers in the column's
 * words. TN_ERR_NAME where there is none of the name. */
TN_API tn_array *tn_table_column(const tn_table *table, const char *name);
/* The words of a column, each once, in the order of their bytes, as numpy.unique gives them; the table's. NULL for a
 * column of numbers, and with TN_ERR_NAME latched. */
TN_API const tn_words *tn_table_words(const tn_table *table, const char *name);
/* Columns first to stop - 1, as in a slice of Python, beside one another: (rows, columns) of a dtype. */
TN_API tn_array *tn_table_array(const tn_table *table, int first, int stop, tn_dtype dtype);
/* The end of a slice to the last column. */
#define TN_TABLE_END 0x7fffffff

#ifndef TN_NO_MACROS
#define tn_encode(...) TN__CALL_VV(tn_encode_with, tn_encode_opts, __VA_ARGS__, )
#define tn_load_encoded(...) TN__CALL_VV(tn_load_encoded_with, tn_encode_opts, __VA_ARGS__, )
#define tn_load_lines(...) TN__CALL_V(tn_load_lines_with, tn_lines_opts, __VA_ARGS__, )
#define tn_load_table(...) TN__CALL_V(tn_load_table_with, tn_table_opts, __VA_ARGS__, )
#define tn_table_column(...) TN_HERE(tn_table_column(__VA_ARGS__))
#define tn_table_array(...) TN_HERE(tn_table_array(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
