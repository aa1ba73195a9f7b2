//! Compiles the SQLite driver against the bundled SQLite and `undertick.h`.

fn main() {
    let header = "include";
    println!("cargo::rerun-if-changed=src/sqlite_driver.c");
    println!("cargo::rerun-if-changed={header}/undertick.h");
    let sqlite =
        std::env::var("DEP_SQLITE3_INCLUDE").expect("the bundled SQLite tells where its header is");
    cc::Build::new()
        .file("src/sqlite_driver.c")
        .include(header)
        .include(sqlite)
        .opt_level(2)
        .warnings(true)
        .compile("undertick_sqlite_driver");
}
