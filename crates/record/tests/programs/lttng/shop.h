/* Tracepoints of LTTng for the test of `undertick import`. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shop
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./shop.h"
#if !defined(SHOP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHOP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(shop, order_begin, LTTNG_UST_TP_ARGS(int, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
LTTNG_UST_TRACEPOINT_EVENT(shop, order_end, LTTNG_UST_TP_ARGS(int, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
LTTNG_UST_TRACEPOINT_EVENT(shop, sold, LTTNG_UST_TP_ARGS(int, n, const char *, what),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, pieces, n)
                                                   lttng_ust_field_string(what, what)))
#endif
#include <lttng/tracepoint-event.h>
