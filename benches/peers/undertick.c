/* Undertick beside the same floor, the same blocks. */
#include "undertick.h"
#include "floor.h"

BLOCK(event, ut_event(7, i))
BLOCK(section, ut_begin(8); ut_end(8))

int main(int argc, char **argv) { return beside_floor(argc, argv, event, section); }
