use super::*;

#[test]
fn the_document_of_pytest_benchmark() {
    let text = r#"{"machine_info":{},"benchmarks":[{"group":null,"name":"test_a","fullname":"test_x.py::test_a[8]",
        "params":{"n":8},"stats":{"min":1e-6,"median":2.5e-6,"rounds":12,"iterations":100,"data":[]}}],"version":"5.0"}"#;
    let said = of_text(text).unwrap();
    assert_eq!(said.benchmarks.len(), 1);
    let one = &said.benchmarks[0];
    assert_eq!(
        (one.name.as_str(), one.iterations),
        ("test_x.py::test_a[8]", 1200)
    );
    assert!((one.time_ns - 2500.0).abs() < 1e-9);
    assert!(of_text("[]").is_err());
}
