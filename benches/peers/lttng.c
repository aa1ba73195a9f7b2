/* LTTng-UST beside the floor. Arguments: blocks, points in each. Run by `cargo xtask bench
 * beside-recorders`, in a session of LTTng. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-points.h"
#include "floor.h"

BLOCK(event, lttng_ust_tracepoint(undertick_peers, event, i))
BLOCK(section, lttng_ust_tracepoint(undertick_peers, section_begin); lttng_ust_tracepoint(undertick_peers, section_end))

int main(int argc, char **argv) { return beside_floor(argc, argv, event, section); }
