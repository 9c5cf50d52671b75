/* comma.h - a locale with a decimal comma, on any machine with glibc: made by localedef from texts
 * of our own, as a bare system has neither locales nor what they are made from. */
#ifndef WSGEMM_TESTS_COMMA_H
#define WSGEMM_TESTS_COMMA_H

#include "check.h"

/* Takes the locale, of the language "xx", into use in this process; its files go into the folder.
 * false: there is no localedef, or its locales are not for this C library. */
bool comma_set(const char *folder);

/* Back to "C". */
void comma_unset(void);

#endif
