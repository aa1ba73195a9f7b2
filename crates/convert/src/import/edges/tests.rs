use super::*;

#[test]
fn names_of_tools() {
    let begin = |name: &str| Edge::Begin(name.to_owned());
    let end = |name: &str| Edge::End(name.to_owned());
    for (event, edge) in [
        ("shop:order_begin", begin("shop:order")),
        ("shop:order_end", end("shop:order")),
        ("shop:begin", begin("shop")),
        ("func_entry", begin("func")),
        (
            "lttng_ust_cyg_profile:func_exit",
            end("lttng_ust_cyg_profile:func"),
        ),
        ("syscalls:sys_enter_write", begin("syscalls:sys_write")),
        (
            "syscalls:sys_exit_exit_group",
            end("syscalls:sys_exit_group"),
        ),
        ("syscall_entry_read", begin("syscall_read")),
        ("irq:softirq_exit", end("irq:softirq")),
        ("shop:legend", Edge::Neither),
        ("blend", Edge::Neither),
        ("end", Edge::Neither),
        ("_end", Edge::Neither),
        ("cycles:u", Edge::Neither),
        ("", Edge::Neither),
    ] {
        assert_eq!(Edge::from_name(event), edge, "{event}");
    }
}
