#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| undertick_fuzz::run("otlp", bytes));
