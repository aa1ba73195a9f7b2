use super::*;

#[test]
fn each_finer_clock_answers_or_says_why() {
    let found = probe();
    assert_eq!(found.len(), 4);
    for finer in found {
        match finer.counts_per_megatick {
            Ok(counts) => assert!(counts > 0),
            Err(why) => println!("skipped: {}: {why}", finer.name),
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_child_that_dies_of_the_instruction_is_found_out() {
    assert!(machine::survives(|| {}));
    // SAFETY: UD2 raises SIGILL, in the child only.
    assert!(!machine::survives(|| unsafe { core::arch::asm!("ud2") }));
}
