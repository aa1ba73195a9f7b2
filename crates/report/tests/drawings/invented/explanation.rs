//! Slow calls and what explains them.

/// Where a call was sampled.
fn stack() -> CallStack {
    CallStack {
        functions: ["memcpy", "copy<std::string>", "main"]
            .map(str::to_owned)
            .to_vec(),
        on_cpu: 3,
        waited_ns: 0.0,
    }
}

use undertick_document::explanation::{
    CallStack, ExplainedPath, Explanation, Part, PartCause, SCHEMA_VERSION, SlowCall, TypicalCall,
};

fn part(cause: PartCause, of: Option<&str>, ns: f64) -> Part {
    Part {
        cause,
        of: of.map(str::to_owned),
        conditions: Vec::new(),
        ns,
        n: 1,
        typical_n: Some(0.0),
    }
}

/// Two calls: one waited and was slower without a cause, the other one was preempted by a thread
/// with a name that must not become markup.
pub fn explanation() -> Explanation {
    let waited = part(PartCause::Waited, Some("writer (8)"), 900_000.0);
    let unexplained = part(PartCause::Unexplained, None, 100_000.0);
    let preempted = part(
        PartCause::Preempted,
        Some("<script>alert(2)</script> (9)"),
        200_000.0,
    );
    let call = |start_ns: f64, excess_ns: f64, parts: Vec<Part>| SlowCall {
        stacks: vec![stack()],
        waits: vec![super::interposed::wait()],
        start_ns,
        took_ns: excess_ns + 1_200.0,
        excess_ns,
        tid: 7,
        thread: Some("server".into()),
        cpu: Some(1),
        off_cpu_unseen: false,
        stolen_up_to_ns: None,
        parts,
    };
    Explanation {
        schema_version: SCHEMA_VERSION,
        error_ns: 69.0,
        has_kernel_events: true,
        paths: vec![ExplainedPath {
            path: vec!["server".into(), "<b>request".into()],
            calls: 48_211,
            typical: TypicalCall {
                looked_at: 8_000,
                n: 1_600,
                took_ns: 1_200.0,
                within_ns: [980.0, 1_310.0],
                parts: vec![part(PartCause::Own, None, 1_200.0)],
            },
            together: vec![waited.clone(), preempted.clone(), unexplained.clone()],
            slowest: vec![
                call(413_210_000.0, 1_000_000.0, vec![waited, unexplained]),
                SlowCall {
                    stacks: vec![stack()],
                    thread: None,
                    cpu: None,
                    stolen_up_to_ns: Some(50_000.0),
                    ..call(613_210_000.0, 200_000.0, vec![preempted])
                },
            ],
        }],
    }
}
