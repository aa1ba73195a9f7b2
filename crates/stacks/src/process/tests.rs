use super::*;

/// Reads memory of this process from the stack pointer on, as the kernel does for a sample.
fn stack_from(sp: u64, bytes: usize) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let text = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let end = (text.lines())
        .filter_map(|line| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            let hex = |text| u64::from_str_radix(text, 16).ok();
            Some(hex(from)?..hex(to)?)
        })
        .find(|of| of.contains(&sp))
        .expect("a mapping of the stack")
        .end;
    let mut stack = vec![0; bytes.min((end - sp) as usize)];
    let memory = File::open("/proc/self/mem").expect("memory");
    memory.read_exact_at(&mut stack, sp).expect("read");
    stack
}

/// Registers here, and what lies on the stack.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn here(bytes: usize) -> (Registers, Vec<u8>) {
    let (ip, sp, fp): (u64, u64, u64);
    // SAFETY: three registers are read.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) fp);
    }
    let registers = Registers { ip, sp, fp, lr: 0 };
    (registers, stack_from(sp, bytes))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn inner(bytes: usize) -> (Registers, Vec<u8>) {
    std::hint::black_box(here(bytes))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn outer(bytes: usize) -> (Registers, Vec<u8>) {
    std::hint::black_box(inner(std::hint::black_box(bytes)))
}

/// The names of a stack from the innermost frame on, and its root.
#[cfg(target_arch = "x86_64")]
fn names(unwinders: &Unwinders, node: u32) -> (Vec<String>, u32) {
    let named = unwinders.tree.name();
    let (mut at, mut names) = (node, Vec::new());
    while let (caller, Some(function)) = named.nodes[at as usize] {
        names.push(named.functions[function as usize].name.clone());
        at = caller;
    }
    (names, at)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_stack_of_this_process_has_the_functions_that_called() {
    let mut unwinders = Unwinders::default();
    let pid = std::process::id() as i32;
    let (registers, stack) = outer(1 << 20);
    let node = unwinders.sample(pid, registers, &stack);
    let (found, root) = names(&unwinders, node);
    let place = |name: &str| found.iter().position(|known| known.ends_with(name));
    assert_eq!(place("tests::inner"), Some(0), "{found:?}");
    assert_eq!(place("tests::outer"), Some(1), "{found:?}");
    assert!(
        place("a_stack_of_this_process_has_the_functions_that_called") > place("tests::outer"),
        "{found:?}"
    );
    assert_eq!(root, Root::Whole as u32, "{found:?}");
    let again = Tree::read(&unwinders.new_lines());
    assert_eq!(again.name(), unwinders.tree.name());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_short_copy_of_the_stack_gives_the_inner_frames_and_says_so() {
    let mut unwinders = Unwinders::default();
    let pid = std::process::id() as i32;
    let (registers, stack) = outer(1 << 9);
    let node = unwinders.sample(pid, registers, &stack);
    let (found, root) = names(&unwinders, node);
    assert!(found[0].ends_with("tests::inner"), "{found:?}");
    assert_eq!(root, Root::Cut as u32, "{found:?}");
}

#[test]
fn a_process_that_is_gone_and_registers_of_nothing_have_no_frames() {
    let mut unwinders = Unwinders::default();
    let unknown = Root::Unknown as u32;
    let some = Registers {
        ip: 0x1000,
        ..Registers::default()
    };
    assert_eq!(unwinders.sample(i32::MAX, some, &[]), unknown);
    let pid = std::process::id() as i32;
    assert_eq!(unwinders.sample(pid, Registers::default(), &[]), unknown);
    assert_eq!(unwinders.sample(pid, some, &[1, 2, 3]), unknown);
}
