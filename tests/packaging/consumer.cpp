// The same program as C++: the header must be valid there too.
#include "consumer.c"
