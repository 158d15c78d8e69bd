/* The hash of the sources that a library was built from. */
#include <stdint.h>

#ifndef SOURCES
#define SOURCES "unknown"
#endif

__attribute__((visibility("default"))) const char sources[] = SOURCES;
