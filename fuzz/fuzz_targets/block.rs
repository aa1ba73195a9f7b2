#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut records = Vec::new();
    undertick_trace::block::decode(bytes, &mut records);
});
