//! A Rust program for benchmarks: a service that parses requests, looks them up and answers, with the
//! work done by serde_json and the standard library.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Keys that the service knows.
const KEYS: u64 = 50_000;

/// Answers requests of one to eight keys, half of which are asked for and half of which are changed.
pub fn run(requests: &str) -> Result<(), String> {
    let requests: u64 = requests
        .parse()
        .map_err(|_| format!("__rust-service {requests}: give a number of requests"))?;
    let key = |number: u64| format!("key-{:06}", number % KEYS);
    let mut known: BTreeMap<String, u64> = (0..KEYS).map(|number| (key(number), number)).collect();
    let mut random: u64 = 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut bytes = 0;
    for number in 0..requests {
        let keys: Vec<String> = (0..1 + next() % 8).map(|_| key(next())).collect();
        let text = json!({ "id": number, "changes": next() % 2 == 0, "keys": keys }).to_string();
        let _request = undertick::span!("request");
        bytes += answered(&text, &mut known).ok_or("a request that cannot be read")?;
    }
    println!("{requests} requests, {bytes} bytes of answers");
    Ok(())
}

/// The length of the answer to a request; `None` if it cannot be read.
fn answered(text: &str, known: &mut BTreeMap<String, u64>) -> Option<usize> {
    let request: Value = {
        let _parse = undertick::span!("parse");
        serde_json::from_str(text).ok()?
    };
    let keys = request["keys"].as_array()?;
    let values: Vec<u64> = {
        let _look_up = undertick::span!("look up");
        let changes = request["changes"].as_bool()?;
        let value = |key: &Value| {
            let value = known.get_mut(key.as_str()?)?;
            *value += u64::from(changes);
            Some(*value)
        };
        keys.iter().map(value).collect::<Option<_>>()?
    };
    let _answer = undertick::span!("answer");
    Some(
        json!({ "id": request["id"], "values": values })
            .to_string()
            .len(),
    )
}
