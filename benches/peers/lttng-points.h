/* The points of lttng.c, as LTTng-UST needs them. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER undertick_peers
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng-points.h"
#if !defined(LTTNG_POINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_POINTS_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(undertick_peers, event, LTTNG_UST_TP_ARGS(unsigned, payload),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, payload, payload)))
LTTNG_UST_TRACEPOINT_EVENT(undertick_peers, section_begin, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(undertick_peers, section_end, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
