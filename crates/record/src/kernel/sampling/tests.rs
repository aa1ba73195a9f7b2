use super::*;

/// A sample as `perf_event_open(2)` describes it.
fn sample(misc: u32, period: u64, registers: Option<&[u64]>, stack: &[u8], valid: u64) -> Vec<u8> {
    let mut body: Vec<u8> = Vec::new();
    for word in [11_u32, 12] {
        body.extend(word.to_ne_bytes());
    }
    body.extend(777_u64.to_ne_bytes());
    for word in [3_u32, 0] {
        body.extend(word.to_ne_bytes());
    }
    body.extend(period.to_ne_bytes());
    body.extend(u64::from(registers.is_some()).to_ne_bytes());
    for register in registers.unwrap_or_default() {
        body.extend(register.to_ne_bytes());
    }
    body.extend((stack.len() as u64).to_ne_bytes());
    body.extend(stack);
    if !stack.is_empty() {
        body.extend(valid.to_ne_bytes());
    }
    let size = (8 + body.len()) as u16;
    let mut record = abi::PERF_RECORD_SAMPLE.to_ne_bytes().to_vec();
    record.extend((misc as u16).to_ne_bytes());
    record.extend(size.to_ne_bytes());
    record.extend(body);
    record
}

#[test]
fn a_sample_has_its_registers_and_as_much_of_the_stack_as_is_valid() {
    let registers: Vec<u64> = (1..=REGISTERS.len() as u64).collect();
    let stack: Vec<u8> = (0..64).collect();
    let bytes = sample(
        abi::PERF_RECORD_MISC_KERNEL,
        5,
        Some(&registers),
        &stack,
        16,
    );
    let found = Sample::parse(&bytes).expect("a sample");
    let expected = Sample {
        pid: 11,
        tid: 12,
        time: 777,
        cpu: 3,
        period: 5,
        is_in_kernel: true,
        registers,
        stack: &stack[..16],
    };
    assert_eq!(found, expected);
}

#[test]
fn a_sample_without_registers_or_stack_is_one_and_a_torn_one_is_none() {
    let bytes = sample(abi::PERF_RECORD_MISC_USER, 5, None, &[], 0);
    let found = Sample::parse(&bytes).expect("a sample");
    assert!(found.registers.is_empty() && found.stack.is_empty() && !found.is_in_kernel);
    assert_eq!(registers(&found.registers), None);
    let registers = [0; REGISTERS.len()];
    let whole = sample(0, 5, Some(&registers), &[0; 64], 1 << 40);
    assert_eq!(
        Sample::parse(&whole).map(|found| found.stack.len()),
        Some(64)
    );
    for end in 0..whole.len() {
        assert_eq!(Sample::parse(&whole[..end]), None, "{end}");
    }
}
