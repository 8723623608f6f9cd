/* SPDX-License-Identifier: MIT */
/* MD5 against RFC 1321's test suite (A.5), whole and in pieces. */
#include "io/check.h"

#include "io/digest.h"

static const struct {
    const char *text, *digest;
} vectors[] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e"},
    {"a", "0cc175b9c0f1b6a831c399e269772661"},
    {"abc", "900150983cd24fb0d6963f7d28e17f72"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
    {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
     "57edf4a22be3c955ac49da2e2107b67a"},
};

static void known_vectors(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
        for (size_t piece = 1; piece <= 80; piece += 13) {
            tn__md5 md5;
            char digest[33];
            size_t length = strlen(vectors[v].text);
            tn__md5_begin(&md5);
            for (size_t at = 0; at < length; at += piece)
                tn__md5_add(&md5, vectors[v].text + at, length - at < piece ? length - at : piece);
            tn__md5_end(&md5, digest);
            assert_string_equal(digest, vectors[v].digest);
        }
}

/* Every length around the edges of a block must be padded to the same digest whichever way it is cut. */
static void every_length(void **state)
{
    (void)state;
    char text[200];
    memset(text, 'x', sizeof text);
    char before[33] = "";
    for (size_t length = 0; length <= sizeof text; length++) {
        tn__md5 whole, cut;
        char a[33], b[33];
        tn__md5_begin(&whole);
        tn__md5_add(&whole, text, length);
        tn__md5_end(&whole, a);
        tn__md5_begin(&cut);
        tn__md5_add(&cut, text, length / 3);
        tn__md5_add(&cut, text, length - length / 3);
        tn__md5_end(&cut, b);
        assert_string_equal(a, b);
        assert_string_not_equal(a, before);
        strcpy(before, a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_vectors), cmocka_unit_test(every_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
