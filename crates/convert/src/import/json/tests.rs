use super::*;

/// Returns the objects, and whether the file was cut; the reader delivers three bytes at a
/// time.
fn objects(text: &str) -> (Vec<String>, bool) {
    let reader = io::BufReader::with_capacity(3, text.as_bytes());
    let mut objects = Objects::new(reader, "traceEvents");
    let mut found = Vec::new();
    while let Some(object) = objects.next().unwrap() {
        found.push(String::from_utf8(object.to_vec()).unwrap());
    }
    (found, objects.is_cut)
}

#[test]
fn finds_the_array_wherever_it_is() {
    let both = [r#"{"a":"]}\"{"}"#, r#"{"b":[{}]}"#];
    let [a, b] = both;
    for text in [
        format!("[{a},{b}]"),
        format!(" [ {a} , {b} ,\n]"),
        format!("{{\"traceEvents\":[{a},{b}]}}"),
        format!(
            "{{\"x\":3,\"y\":\"]\",\"z\":{{\"traceEvents\":[1]}},\"traceEvents\": [{a}, {b}],\"after\":[[]]}}"
        ),
        format!("{{\"traceEvents\":7,\"traceEvents\":[{a},{b}]}}"),
    ] {
        assert_eq!(
            objects(&text),
            (both.map(str::to_owned).to_vec(), false),
            "{text}"
        );
    }
    assert_eq!(objects("[]"), (vec![], false));
    assert_eq!(objects("{}"), (vec![], false));
}

#[test]
fn reads_what_is_there_of_a_file_that_was_cut() {
    for (text, whole) in [
        ("[{\"a\":1},{\"b\":2}", 2),
        ("[{\"a\":1},{\"b\":", 1),
        ("[{\"a\":1},\n", 1),
        ("[", 0),
        ("{\"traceEvents\":[{\"a\":1}", 1),
        ("{\"traceEvents\":[{\"a\":1}],\"x\":\"", 1),
    ] {
        let (found, is_cut) = objects(text);
        assert_eq!((found.len(), is_cut), (whole, true), "{text}");
    }
}

#[test]
fn says_where_it_is_no_json() {
    for (text, at) in [
        ("hello", 0),
        ("[1,2]", 1),
        ("{\"a\" 1}", 5),
        ("{a}", 1),
        ("", 0),
    ] {
        let mut objects = Objects::new(text.as_bytes(), "traceEvents");
        match objects.next() {
            Err(Bad::Syntax(found, _)) => assert_eq!(found, at, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
