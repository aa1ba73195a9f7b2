//! Checks that this command line accepts every command that README, book and `--help` show. Nothing
//! is run: the words go to the parser.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;
use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};

use crate::args::Arguments;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("python/README.md")];
    for dir in ["docs", "docs/book"] {
        let files = std::fs::read_dir(root().join(dir)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        found.extend(files.filter(|file| file.extension().is_some_and(|e| e == "md")));
    }
    found
}

/// Returns the blocks of code, and the code within sentences.
fn code_of(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut inline) = (Vec::new(), Vec::new());
    let mut block: Option<String> = None;
    let options = pulldown_cmark::Options::ENABLE_TABLES;
    for event in pulldown_cmark::Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) if is_shell(&kind) => block = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => blocks.extend(block.take()),
            Event::Text(words) => block.iter_mut().for_each(|b| b.push_str(&words)),
            Event::Code(words) => inline.push(words.into_string()),
            _ => {}
        }
    }
    (blocks, inline)
}

/// Indented blocks contain commands, too, together with their output.
fn is_shell(kind: &CodeBlockKind) -> bool {
    match kind {
        CodeBlockKind::Indented => true,
        CodeBlockKind::Fenced(language) => ["", "sh"].contains(&language.as_ref()),
    }
}

/// Returns the commands of a shell's text, each as its words. Quoted text stays together; comments
/// and redirections are left out.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    joined.lines().flat_map(of_line).collect()
}

fn of_line(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut quote, mut depth) = (None::<String>, None, 0);
    for letter in line.trim_start().trim_start_matches("$ ").chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '(') if word.as_deref().is_some_and(|w| w.ends_with('$')) => {
                depth += 1;
                word.get_or_insert_default().push(letter);
            }
            (None, ')') if depth > 0 => {
                depth -= 1;
                word.get_or_insert_default().push(letter);
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&') if depth == 0 => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, '<' | '>') if depth == 0 && !line.contains("<PROGRAM>") => {
                words.extend(word.take());
                words.push(letter.to_string());
            }
            (None, ' ') if depth == 0 => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.into_iter().map(not_redirected).collect()
}

fn not_redirected(words: Vec<String>) -> Vec<String> {
    let end = words.iter().position(|w| w == "<" || w == ">");
    words[..end.unwrap_or(words.len())].to_vec()
}

/// Returns the words after the program's name, if it is ours.
fn ours(words: &[String]) -> Option<Vec<String>> {
    let starts = [
        &["undertick"][..],
        &["python", "-m", "undertick"],
        &["cargo", "run", "--release", "--"],
    ];
    let is_start = |start: &&&[&str]| {
        words
            .iter()
            .zip(start.iter())
            .filter(|(w, s)| w == s)
            .count()
            == start.len()
    };
    let start = starts.iter().find(is_start)?;
    let rest = words[start.len()..].iter();
    // A command substitution is replaced by a number, which the options with one require.
    let rest = rest.map(|w| {
        if w.starts_with("$(") {
            "1".to_owned()
        } else {
            w.clone()
        }
    });
    Some(
        std::iter::once("undertick".to_owned())
            .chain(rest)
            .collect(),
    )
}

/// Returns the error of a command, `None` if it is accepted. A command in a sentence may be
/// incomplete.
fn wrong(words: &[String], is_begun: bool) -> Option<String> {
    let words_os: Vec<_> = words.iter().map(Into::into).collect();
    let error = crate::front::parse(&words_os).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if is_begun =>
        {
            None
        }
        _ => Some(format!("{}\n{error}", words.join(" "))),
    }
}

#[test]
fn words_of_a_line() {
    let line = "$ undertick record --pid $(pgrep -n p) -- ./a 'b c' > f.txt  # x && cat \"f\" | jq";
    let first: Vec<String> = [
        "undertick",
        "record",
        "--pid",
        "$(pgrep -n p)",
        "--",
        "./a",
        "b c",
    ]
    .map(str::to_owned)
    .to_vec();
    assert_eq!(of_line(line), [first]);
    let two = of_line("undertick a | jq .b; undertick c");
    let two: Vec<String> = two.iter().map(|words| words.join(" ")).collect();
    assert_eq!(two, ["undertick a", "jq .b", "undertick c"]);
}

#[test]
fn the_documents_commands() {
    let (mut checked, mut failures) = (0, Vec::new());
    for path in documents() {
        let (blocks, inline) = code_of(&std::fs::read_to_string(&path).unwrap());
        let begun = inline.iter().filter(|code| code.starts_with("undertick "));
        let all = (blocks.iter().map(|code| (code, false))).chain(begun.map(|code| (code, true)));
        for (code, is_begun) in all {
            for words in commands(code).iter().filter_map(|words| ours(words)) {
                checked += 1;
                let failure = wrong(&words, is_begun);
                failures.extend(failure.map(|why| format!("{}: {why}", path.display())));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked >= 100, "only {checked} commands found");
}

#[test]
fn the_examples_of_help() {
    let (mut checked, mut failures) = (0, Vec::new());
    let whole = Arguments::command();
    let all = whole.get_subcommands();
    for command in all.flat_map(|c| std::iter::once(c).chain(c.get_subcommands())) {
        let help = command.get_after_help().map(ToString::to_string);
        for line in help.iter().flat_map(|help| help.lines()) {
            let example = line.split("   (").next().unwrap_or(line);
            for words in commands(example).iter().filter_map(|words| ours(words)) {
                checked += 1;
                let failure = wrong(&words, false);
                failures.extend(failure.map(|why| format!("{}: {why}", command.get_name())));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked >= 40, "only {checked} examples found");
}

/// Each block of TOML is accepted by the reader for which it is meant.
#[test]
fn tables_and_scripts() {
    let mut read = std::collections::BTreeMap::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let at = path.display();
            let reader = reader_of(block).unwrap_or_else(|why| panic!("{at}: {why}\n{block}"));
            *read.entry(reader).or_insert(0) += 1;
        }
    }
    for reader in ["table", "slow script", "cargo", "defaults"] {
        assert!(read.contains_key(reader), "{read:?}");
    }
}

/// Accepts a file of defaults by completing the commands that it is for.
fn defaults(block: &str) -> Result<&'static str, String> {
    for words in [
        "undertick record -- true",
        "undertick slow run a.toml",
        "undertick report a.ut",
    ] {
        let given: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let path = Path::new("config.toml");
        let completed = crate::config::completed_by(
            path,
            || Ok(block.to_owned()),
            given.clone(),
            &Arguments::command(),
        );
        let completed = completed.map_err(|failure| failure.text)?;
        if completed.len() == given.len() {
            return Err(format!("nothing for {words}"));
        }
    }
    Ok("defaults")
}

/// Returns the reader of a block, determined by its content.
fn reader_of(block: &str) -> Result<&'static str, String> {
    if block.contains("[dependencies]") {
        let parsed: Result<toml::Table, _> = toml::from_str(block);
        parsed.map(|_| "cargo").map_err(|e| e.to_string())
    } else if block.contains("[record]") {
        defaults(block)
    } else if block.contains("[[process]]") {
        let parsed = undertick_experiment::script::Script::parse(block);
        parsed.map(|_| "script").map_err(|e| e.to_string())
    } else if block.contains("[[step]]") {
        let parsed = undertick_meter::slow::Script::parse(block);
        parsed.map(|_| "slow script").map_err(|e| e.to_string())
    } else {
        let parsed = undertick_analyze::Table::parse(block, "sample");
        parsed.map(|_| "table").map_err(|e| e.to_string())
    }
}

/// The chapter's first script is valid with all of its further pieces inserted.
#[test]
fn the_pieces_of_the_chapter_on_scripts() {
    let text = std::fs::read_to_string(root().join("docs/book/scripts.md")).unwrap();
    let (blocks, _) = code_of(&text);
    let piece = |begin: &str| blocks.iter().find(|b| b.starts_with(begin)).unwrap();
    let [sweep, latency, line] = [
        "[sweep]\nwords",
        "[[interval]]\nname = \"latency",
        "[[line]]",
    ];
    let mut script = piece("seconds").clone();
    for (part, whole) in [
        ("[sweep]\n", piece(sweep).as_str()),
        (
            "place = [\"same cpu as client\", \"other cpu than client\"]\n",
            "\n",
        ),
        ("\"$place\"", "\"any\""),
        ("kind = \"pipe\"", "kind = \"$kind\""),
        ("name = \"client\"", "name = \"client\"\nreplicas = \"$n\""),
        ("name = \"server\"", "name = \"server\"\nreplicas = \"$n\""),
        (
            "send = \"there\"",
            "prepare = \"$words\"\n\n[[process.step]]\nsend = \"there\"",
        ),
    ] {
        assert!(script.contains(part), "{part}");
        script = script.replace(part, whole);
    }
    script += &format!("\n{}\n{}", piece(latency), piece(line));
    let parsed = undertick_experiment::script::Script::parse(&script);
    let parsed = parsed.unwrap_or_else(|why| panic!("{why}\n{script}"));
    assert_eq!(parsed.settings.len(), 3 * 2 * 4);
}

#[test]
fn the_commands_of_services() {
    for file in [
        "undertick.service",
        "kubernetes.yml",
        "kubernetes-sidecar.yml",
    ] {
        let path = root().join("docs/service").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let without_comments = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        // One command, over several lines.
        let joined: Vec<&str> = without_comments
            .map(|line| line.trim_end_matches('\\'))
            .collect();
        let joined = joined.join(" ");
        let from = joined.find("undertick --quiet record").expect("a command");
        let trace = joined[from..].find(".ut").expect("its trace") + ".ut".len();
        let server = joined[from..].find("-- /usr/bin/my-server");
        let to = server.map_or(trace, |at| at + "-- /usr/bin/my-server".len());
        let numbers = [
            ("$(date +%s)", "1"),
            ("$(date +%%s)", "1"),
            ("\"$pid\"", "1"),
        ];
        let mut command = joined[from..][..to].to_owned();
        for (shell, number) in numbers {
            command = command.replace(shell, number);
        }
        if command.matches('"').count() % 2 == 1 {
            command.push('"');
        }
        let words = &commands(&command)[0];
        let words = ours(words).expect("a command of ours");
        assert!(words.len() > 15, "{words:?}");
        assert_eq!(wrong(&words, false), None, "{file}");
    }
}
