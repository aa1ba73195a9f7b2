use super::*;

#[test]
fn models_and_memory_by_hand() {
    assert_eq!(
        cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9B45\n"),
        "AMD EPYC 9B45"
    );
    let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
    assert_eq!(cpu_model(arm), "implementer 0x41 part 0xd0c");
    assert_eq!(cpu_model(""), "");
    assert_eq!(
        memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
        Some(16 << 20)
    );
    assert_eq!(memory_bytes("MemTotal: much\n"), None);
}
