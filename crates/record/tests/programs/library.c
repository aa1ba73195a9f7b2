#include "undertick.h"
__attribute__((visibility("default"))) void library_record(unsigned long i);
void library_record(unsigned long i) { ut_event(6, (uint32_t)i); }
