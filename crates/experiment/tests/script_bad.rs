//! Scripts with mistakes: each message names the place, the mistake and the mend.

use undertick_experiment::script::Script;

/// A script without mistakes; each case below makes one.
const GOOD: &str = r#"passes = 10
backend = "futex"
[lock.m]
kind = "pthread"
[channel.c]
kind = "pipe"
[region.r]
bytes = "4KiB"
[[process]]
name = "A"
[[process.step]]
wakeup = "B"
[[process.step]]
send = "c"
[[process.step]]
lock = "m"
[[process.step]]
unlock = "m"
[[process]]
name = "B"
start = "blocked"
[[process.step]]
receive = "c"
[[process.step]]
block = true
[[process.step]]
touch = "r"
[[interval]]
name = "i"
from = "A.send"
to = "B.receive"
"#;

/// The replaced text (first place only), its replacement, the place of the mistake (line, column),
/// and words of the message.
struct Case(
    &'static str,
    &'static str,
    (usize, usize),
    &'static [&'static str],
);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Mistakes in the TOML itself.
    Case("passes = 10", "passes 10", (1, 8), &["no TOML", "key = value"]),
    Case("passes = 10", "passes = 10\npasses = 11", (2, 1), &["duplicate", "stands once"]),
    Case("name = \"A\"", "name = \"A", (10, 10), &["no TOML", "quotes"]),
    // Unknown keys.
    Case("passes", "pases", (1, 1), &["a script has no key \"pases\"", "did you mean \"passes\""]),
    Case("start =", "strat =", (21, 1), &["a process has no key \"strat\"", "did you mean \"start\""]),
    Case("block =", "blok =", (25, 1), &["a step has no key \"blok\"", "did you mean \"block\""]),
    Case("kind = \"pthread\"", "kinds = \"pthread\"", (4, 1), &["a lock has no key \"kinds\"", "did you mean \"kind\""]),
    Case("kind = \"pipe\"", "sort = \"pipe\"", (6, 1), &["a channel has no key \"sort\"", "there is: kind"]),
    Case("bytes = \"4KiB\"", "byte = \"4KiB\"", (8, 1), &["a region has no key \"byte\"", "did you mean \"bytes\""]),
    Case("from = ", "form = ", (30, 1), &["an interval has no key \"form\"", "did you mean \"from\""]),
    Case("kind = \"pipe\"", "kind = \"pipe\"\nwarm_up = 3", (7, 1), &["warm_up belongs to the whole script", "above the first [table]"]),
    // Missing keys.
    Case("name = \"A\"\n", "", (9, 1), &["a process lacks the key name", "name = \"A\""]),
    Case("kind = \"pthread\"\n", "", (3, 1), &["a lock lacks the key kind", "kind = \"pthread\""]),
    Case("bytes = \"4KiB\"\n", "", (7, 1), &["a region lacks the key bytes", "\"4MiB\""]),
    Case("to = \"B.receive\"\n", "", (28, 1), &["an interval lacks the key to", "to = \"client.send\""]),
    Case("wakeup = \"B\"\n", "", (11, 1), &["does nothing", "one verb"]),
    Case("backend = \"futex\"\n", "", (11, 1), &["needs a backend", "backend = \"futex\""]),
    // Superfluous keys.
    Case("wakeup = \"B\"", "wakeup = \"B\"\nnull = true", (13, 1), &["null is a second verb beside wakeup", "[[process.step]] between"]),
    Case("wakeup = \"B\"", "wakeup = \"B\"\ntimes = 3", (13, 1), &["times goes with lock_unlock only", "leave it out"]),
    Case("receive = \"c\"", "receive = \"c\"\nwords = 3", (24, 1), &["words goes with send only"]),
    // Wrong types.
    Case("passes = 10", "passes = \"10\"", (1, 10), &["passes is a string here", "without quotes"]),
    Case("passes = 10", "passes = 1.5", (1, 10), &["passes is a number with a fraction", "whole number"]),
    Case("block = true", "block = \"B\"", (25, 9), &["block is a string here", "block = true"]),
    Case("block = true", "block = false", (25, 9), &["block = true is all", "leave the step out"]),
    Case("wakeup = \"B\"", "wakeup = 2", (12, 10), &["wakeup is a whole number here", "wakeup = \"A\""]),
    Case("wakeup = \"B\"", "notify = \"ten\"", (12, 10), &["notify is a string", "whole number"]),
    Case("wakeup = \"B\"", "work = 5", (12, 8), &["work is a whole number here", "work = \"50us\""]),
    Case("kind = \"pipe\"", "kind = 3", (6, 8), &["kind is a whole number here", "words in quotes", "eventfd"]),
    Case("[channel.c]\nkind = \"pipe\"", "[channel]\nc = \"pipe\"", (6, 1), &["channel is a string here", "[channel.NAME]"]),
    Case("[[interval]]", "[interval]", (28, 2), &["interval is a table here", "[[interval]]"]),
    Case("passes = 10", "passes = 10\ntitle = 3", (2, 9), &["title is a whole number here", "in quotes"]),
    Case("passes = 10", "passes = 2026-01-01", (1, 10), &["passes is a date here"]),
    // Unknown kinds.
    Case("\"pthread\"", "\"pthred\"", (4, 8), &["no kind of lock \"pthred\"", "did you mean \"pthread\""]),
    Case("\"pipe\"", "\"pip\"", (6, 8), &["no kind of channel \"pip\"", "did you mean \"pipe\""]),
    Case("\"futex\"", "\"futx\"", (2, 11), &["no backend \"futx\"", "did you mean \"futex\""]),
    Case("\"4KiB\"", "\"4KiB\"\nkind = \"priv\"", (9, 8), &["no kind of region \"priv\"", "private"]),
    Case("\"4KiB\"", "\"4KiB\"\npages = \"1GiB\"", (9, 9), &["no kind of pages \"1GiB\"", "2MiB"]),
    Case("start = \"blocked\"", "start = \"bloked\"", (21, 9), &["did you mean \"blocked\""]),
    Case("start = \"blocked\"", "as = \"tread\"", (21, 6), &["no kind of process \"tread\"", "did you mean \"thread\""]),
    Case("passes = 10", "policy = \"fifi\"", (1, 10), &["no scheduling policy \"fifi\"", "did you mean \"fifo\""]),
    Case("passes = 10", "policy = \"fifo, batch\"", (1, 10), &["no scheduling policy \"fifo, batch\"", "other, batch, fifo, rr"]),
    Case("passes = 10", "policy = \"fifo else fifo\"", (1, 10), &["\"fifo\" twice", "leave one of them out"]),
    Case("passes = 10", "policy = 1", (1, 10), &["policy is a whole number here", "policy = \"fifo else batch\""]),
    Case("passes = 10", "stamps = \"arround\"", (1, 10), &["no way of stamping", "did you mean \"around\""]),
    Case("touch = \"r\"", "call = \"getpppid\"", (27, 8), &["no system call \"getpppid\"", "did you mean \"getppid\""]),
    Case("touch = \"r\"", "read = \"monotonc\"", (27, 8), &["no clock to read \"monotonc\"", "did you mean \"monotonic\""]),
    Case("touch = \"r\"", "fork = \"vfrk\"", (27, 8), &["no way of making a child \"vfrk\"", "did you mean \"vfork\""]),
    // Undeclared names.
    Case("wakeup = \"B\"", "wakeup = \"b\"", (12, 10), &["no process \"b\"", "did you mean \"B\""]),
    Case("unlock = \"m\"", "unlock = \"mm\"", (18, 10), &["no lock \"mm\"", "there is: m"]),
    Case("send = \"c\"", "send = \"d\"", (14, 8), &["no channel \"d\"", "there is: c"]),
    Case("touch = \"r\"", "fill = \"region\"", (27, 8), &["no region \"region\"", "there is: r"]),
    Case("[lock.m]\nkind = \"pthread\"\n", "", (14, 8), &["no lock \"m\"", "a line [lock.m]"]),
    Case("name = \"B\"", "name = \"A\"", (20, 8), &["two processes \"A\"", "rename one"]),
    Case("name = \"A\"", "name = \"A.1\"", (10, 8), &["cannot hold '.'", "leave it out"]),
    Case("name = \"A\"", "name = \"\"", (10, 8), &["a name is not empty"]),
    // Wrong step numbers.
    Case("send = \"c\"", "number = 1\nsend = \"c\"", (14, 10), &["number 1 does not come after 1", "use 2 or more"]),
    Case("send = \"c\"", "number = -1\nsend = \"c\"", (14, 10), &["number = -1 is out of range"]),
    Case("send = \"c\"", "name = \"wakeup B\"\nsend = \"c\"", (14, 8), &["two steps \"wakeup B\"", "rename one"]),
    Case("send = \"c\"", "name = \"7\"\nsend = \"c\"", (14, 8), &["not a number", "number = 3"]),
    Case("send = \"c\"", "send = \"c\"\n[[process.step]]\ngo_to = 1", (16, 1), &["nothing comes after go_to", "last step"]),
    Case("touch = \"r\"", "touch = \"r\"\n[[process.step]]\ngo_to = 9", (29, 1), &["no step 9 to go to", "it has 1, 2, 3"]),
    Case("touch = \"r\"", "touch = \"r\"\n[[process.step]]\ngo_to = 4", (29, 1), &["no step 4 to go to"]),
    // Values out of range.
    Case("passes = 10", "passes = 0", (1, 10), &["passes = 0 is out of range", "from 1 to 1000000000"]),
    Case("passes = 10", "seconds = 0", (1, 11), &["seconds = 0 is out of range", "above 0"]),
    Case("passes = 10", "seconds = nan", (1, 11), &["seconds = NaN is out of range"]),
    Case("passes = 10", "seconds = 20", (1, 11), &["no time before the timeout of 10s", "timeout = \"40s\""]),
    Case("passes = 10", "passes = 10\nseconds = 0.2", (2, 11), &["passes and seconds", "leave one of them out"]),
    Case("passes = 10", "repetitions = 1001", (1, 15), &["repetitions is out of range", "1 to 1000"]),
    Case("passes = 10", "seed = -3", (1, 8), &["seed is out of range"]),
    Case("start = \"blocked\"", "replicas = 65", (21, 12), &["replicas = 65 is out of range", "from 1 to 64"]),
    Case("send = \"c\"", "send = \"c\"\nwords = 99999999", (15, 9), &["words = 99999999 is out of range", "16777216"]),
    Case("bytes = \"4KiB\"", "bytes = 0", (8, 9), &["bytes = 0 is out of range", "64GiB"]),
    Case("bytes = \"4KiB\"", "bytes = \"100GiB\"", (8, 9), &["bytes = 107374182400 is out of range"]),
    Case("bytes = \"4KiB\"", "bytes = \"4 pages\"", (8, 9), &["no size", "KiB, MiB or GiB"]),
    Case("lock = \"m\"", "lock_unlock = \"m\"\ntimes = 0", (17, 9), &["times = 0 is out of range"]),
    // Wrong times.
    Case("passes = 10", "timeout = \"0s\"", (1, 11), &["timeout must be above 0", "\"10s\""]),
    Case("passes = 10", "timeout = \"2h\"", (1, 11), &["\"2h\" is no time", "ns, us, ms or s"]),
    Case("passes = 10", "timeout = \"3601s\"", (1, 11), &["longer than an hour", "\"3600s\""]),
    Case("passes = 10", "settle = \"-5us\"", (1, 10), &["settle = \"-5us\" is below 0", "\"50us\""]),
    Case("touch = \"r\"", "sleep = \"0ms\"", (27, 9), &["sleep must be above 0"]),
    Case("start = \"blocked\"", "every = \"0ms\"", (21, 9), &["every must be above 0"]),
    Case("start = \"blocked\"", "after = \"soon\"", (21, 9), &["\"soon\" is no time"]),
    // Wrong places.
    Case("start = \"blocked\"", "place = \"cpu x\"", (21, 9), &["\"cpu x\" is no place", "cpus 0,2-3"]),
    Case("start = \"blocked\"", "place = \"cpus 3-1\"", (21, 9), &["\"cpus 3-1\" is no place"]),
    Case("start = \"blocked\"", "place = \"same cpu as B\"", (21, 9), &["about this process itself", "another one"]),
    Case("start = \"blocked\"", "place = \"same cpu as AA\"", (21, 9), &["no process \"AA\"", "there is: A, B"]),
    Case("start = \"blocked\"", "place = \"cluster x\"", (21, 9), &["\"cluster x\" is no place", "\"cluster 0\""]),
    Case("start = \"blocked\"", "place = \"on the moon\"", (21, 9), &["is no place", "\"any\""]),
    // Wrong partners.
    Case("wakeup = \"B\"", "wakeup = \"A\"", (12, 1), &["A wakes itself", "another process"]),
    Case("wakeup = \"B\"", "until_blocked = \"A\"", (12, 1), &["A watches itself"]),
    Case("wakeup = \"B\"", "null = true", (25, 1), &["nobody wakes B", "wakeup = \"B\""]),
    Case("touch = \"r\"", "until_blocked = \"A\"", (27, 1), &["A never blocks", "block, wait or receive"]),
    Case("name = \"A\"", "name = \"A\"\nstart = \"blocked\"", (11, 9), &["cannot start blocked", "block, wait or receive"]),
    Case("name = \"A\"", "name = \"A\"\nreplicas = 2", (13, 1), &["A has 2 replicas and B has 1", "equally many"]),
    Case("send = \"c\"", "null = true", (23, 1), &["nobody sends over \"c\"", "send = \"c\""]),
    Case("receive = \"c\"", "null = true", (14, 1), &["nobody receives from \"c\"", "receive = \"c\""]),
    Case("touch = \"r\"", "send = \"c\"", (27, 1), &["A and B both send over \"c\"", "its own"]),
    Case("lock = \"m\"\n[[process.step]]\nunlock = \"m\"", "receive = \"c\"", (21, 1), &["A and B both receive from \"c\""]),
    Case("receive = \"c\"", "receive = \"c\"\n[[process.step]]\nsend = \"c\"", (25, 1), &["A and B both send over \"c\""]),
    Case("[lock.m]", "[channel.d]\nkind = \"unix\"\n[lock.m]", (3, 10), &["no step uses the channel \"d\"", "leave it out"]),
    Case("wakeup = \"B\"", "addevent = 3\n[[process.step]]\nwait = true", (14, 1), &["waits here for event 3", "notify = 3"]),
    // Locks that are taken and never released.
    Case("unlock = \"m\"", "null = true", (16, 1), &["still held from the pass before", "unlock = \"m\""]),
    Case("lock = \"m\"", "null = true", (18, 1), &["A does not hold the lock \"m\"", "lock = \"m\""]),
    Case("unlock = \"m\"", "lock = \"m\"", (18, 1), &["holds the lock \"m\" already", "unlock = \"m\""]),
    Case("unlock = \"m\"", "lock_unlock = \"m\"", (18, 1), &["holds the lock \"m\" already"]),
    Case("unlock = \"m\"", "null = true\n[[process.step]]\ngo_to = 4", (16, 1), &["never given back", "unlock = \"m\""]),
    Case("touch = \"r\"", "reap = true", (27, 1), &["no child to wait for", "fork = \"fork\""]),
    Case("touch = \"r\"", "fork = \"clone\"", (27, 1), &["of the pass before has not been waited for", "reap = true"]),
    Case("touch = \"r\"", "create = \"r\"", (27, 1), &["made before the first pass", "ready = false in [region.r]"]),
    Case("touch = \"r\"", "free = \"r\"", (27, 1), &["has been given back", "ready = false"]),
    Case("bytes = \"4KiB\"", "bytes = \"4KiB\"\nready = false", (28, 1), &["has not made the region \"r\"", "create = \"r\""]),
    // Wrong ends of intervals.
    Case("to = \"B.receive\"", "to = \"B.recieve\"", (31, 6), &["no step of B \"recieve\""]),
    Case("to = \"B.receive\"", "to = \"C.receive\"", (31, 6), &["no process \"C\" (there is: A, B)"]),
    Case("to = \"B.receive\"", "to = \"receive\"", (31, 6), &["names no step", "PROCESS.STEP"]),
    Case("to = \"B.receive\"", "to = \"B.9\"", (31, 6), &["no step of B with the number \"9\"", "there is: 1, 2, 3"]),
    Case("to = \"B.receive\"", "to = \"begin of A.send\"", (31, 6), &["the same point", "another step"]),
    Case("send = \"c\"", "send = \"c\"\ntimed = false", (31, 8), &["step 2 of A is not timed", "timed = false"]),
    Case("name = \"A\"", "name = \"A\"\nmeasured = false", (31, 8), &["A is not measured", "measured = true"]),
    Case("unlock = \"m\"", "unlock = \"m\"\n[[process.step]]\ngo_to = 3", (32, 8), &["step 2 of A is done once", "from 3 on"]),
    Case("lock = \"m\"", "send = \"c\"\n[[process.step]]\nlock = \"m\"", (32, 8), &["more than one step \"send\" (2 and 3)", "A.2"]),
    Case("to = \"B.receive\"", "to = \"B.receive\"\n[[interval]]\nname = \"i\"\nfrom = \"A.1\"\nto = \"B.1\"", (33, 8), &["two intervals \"i\"", "rename one"]),
    Case("start = \"blocked\"", "background = true\nmeasured = true", (22, 12), &["in the background is not measured", "leave out"]),
];

/// Whole scripts, the places of their mistakes, and words of the messages.
#[rustfmt::skip]
const WHOLE: &[(&str, (usize, usize), &[&str])] = &[
    ("", (1, 1), &["no process", "[[process]]"]),
    ("# nothing\n", (1, 1), &["no process"]),
    ("[[process.step]]\nnull = true\n", (1, 3), &["process is a table here", "[[process]]"]),
    ("[[process]]\nname = \"A\"\n", (1, 1), &["no steps", "[[process.step]]"]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\ngo_to = 1\n", (4, 1), &["no step 1 to go to", "none before this"]),
    ("backend = \"pipe\"\n[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\n", (1, 11), &["no step uses the backend", "leave it out"]),
    ("backend = \"signal\"\n[[process]]\nname = \"A\"\n[[process.step]]\nnotify = 1\n", (5, 1), &["signals have no events", "\"eventfd\""]),
    ("[[process]]\nname = \"A\"\nmeasured = false\n[[process.step]]\nnull = true\n", (2, 8), &["no process is measured", "measured = true"]),
    ("[[process]]\nname = \"A\"\nbackground = true\n[[process.step]]\nnull = true\n", (2, 8), &["in the background", "never ends"]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\ntimed = false\n", (2, 8), &["no step of a measured process is timed"]),
    ("[channel.c]\nkind = \"pipe\"\n[[process]]\nname = \"A\"\n[[process.step]]\nsend = \"c\"\n[[process.step]]\nreceive = \"c\"\n", (8, 1), &["A sends and receives over \"c\"", "use two"]),
    ("[region.r]\nbytes = 9\nready = false\n[[process]]\nname = \"A\"\n[[process.step]]\ncreate = \"r\"\n", (7, 1), &["still there from the pass before", "free = \"r\""]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\nfork = \"fork\"\n[[process.step]]\nreap = true\n[[process.step]]\nreap = true\n", (8, 1), &["no child to wait for"]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\nfork = \"fork\"\n[[process.step]]\nfork = \"vfork\"\n", (6, 1), &["one child at a time", "reap = true before this"]),
    // Places form a circle: A at B, B at C, C at A.
    ("[[process]]\nname = \"A\"\nplace = \"same cpu as B\"\n[[process.step]]\nnull = true\n[[process]]\nname = \"B\"\nplace = \"other core than C\"\n[[process.step]]\nnull = true\n[[process]]\nname = \"C\"\nplace = \"other cpu than A\"\n[[process.step]]\nnull = true\n", (3, 9), &["in a circle", "cpu 0"]),
    // Wrong sweeps.
    ("sweep = 3\n", (1, 1), &["sweep is a table", "[sweep]"]),
    ("[sweep]\nn = []\n", (2, 5), &["n has no values"]),
    ("[sweep]\nn = [1, \"a\"]\n", (2, 9), &["values of n are all numbers", "a string"]),
    ("[sweep]\nn = [\"a\", 1]\n", (2, 11), &["values of n are all strings", "a whole number"]),
    ("[sweep]\nn = [true]\n", (2, 6), &["numbers or strings"]),
    ("[sweep]\nn = [1, 2, 1]\n", (2, 12), &["this value twice", "leave one out"]),
    ("[sweep]\nn = 3\n", (2, 5), &["a list of values", "n = [0, 50]"]),
    ("[sweep]\npasses = 3\n", (2, 10), &["a list of values", "above the first [table]"]),
    ("[sweep]\nn = \"4..1\"\n", (2, 5), &["is empty", "smaller end comes first"]),
    ("[sweep]\nn = \"1..4 by 0\"\n", (2, 5), &["never moves"]),
    ("[sweep]\nn = \"1 to 4\"\n", (2, 5), &["no range", "\"1..4\""]),
    ("[sweep]\nn = \"1..99999\"\n", (2, 5), &["n has 99999 values", "10000"]),
    ("[sweep]\nm = \"1..101\"\nn = \"1..100\"\n", (3, 1), &["10100 settings", "at most 10000"]),
    ("[sweep]\nn-1 = [1]\n", (2, 1), &["cannot be a parameter's name", "letters, digits and _"]),
    ("[sweep]\nn = [\"$n\"]\n", (2, 6), &["cannot hold another parameter"]),
    ("[sweep]\nn = [1]\n[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\n", (2, 1), &["the parameter n is never used", "\"$n\""]),
    ("[sweep]\nwords = [1]\n[[process]]\nname = \"A\"\n[[process.step]]\naccess = \"$word\"\n", (6, 10), &["no parameter \"word\"", "did you mean \"words\""]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\naccess = \"$words\"\n", (4, 10), &["no parameter \"words\"", "[sweep]"]),
    ("[[process]]\nname = \"A\"\n[[process.step]]\nwork = \"5$\"\n", (4, 8), &["a $ stands before the name of a parameter"]),
    // Values that come from a parameter: the message names the setting.
    ("[sweep]\nkind = [\"spin\", \"pip\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\n[[process.step]]\nlock_unlock = \"m\"\n", (4, 8), &["no kind of lock \"pip\"", "(with kind = \"pip\")"]),
    ("[sweep]\nn = [63, 64, 65]\n[[process]]\nname = \"A\"\nreplicas = \"$n\"\n[[process.step]]\nnull = true\n", (5, 12), &["replicas = 65 is out of range", "(with n = 65)"]),
    ("[sweep]\nn = [1, 9000]\n[[process]]\nname = \"A\"\nplace = \"cpu $n\"\n[[process.step]]\nnull = true\n", (5, 9), &["\"cpu 9000\" is no place", "(with n = 9000)"]),
    ("[sweep]\nn = [1.5]\n[[process]]\nname = \"A\"\nreplicas = \"$n\"\n[[process.step]]\nnull = true\n", (5, 12), &["replicas is a number with a fraction", "(with n = 1.5)"]),
    ("[sweep]\nn = [1, 2]\n[channel.c]\nkind = \"pipe\"\n[[process]]\nname = \"A\"\nreplicas = \"$n\"\n[[process.step]]\nsend = \"c\"\n[[process]]\nname = \"B\"\n[[process.step]]\nreceive = \"c\"\n", (9, 1), &["A has 2 replicas and B has 1", "(with n = 2)"]),
    ("repetitions = \"$n\"\n[sweep]\nn = [1]\n", (1, 15), &["repetitions is a string here", "the same for all settings"]),
    // Wrong lines.
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"A.lock_unlock\"\n", (12, 1), &["a line lacks the key against", "against = "]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"A.lock_unlock\"\nagainst = \"m\"\n", (15, 11), &["there is no parameter", "n, kind"]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"A.lock_unlock\"\nagainst = \"kind\"\n", (15, 11), &["numbers or sizes", "spin"]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"al\"\nagainst = \"n\"\n", (14, 6), &["there is no", "did you mean", "all"]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"A.unlock\"\nagainst = \"n\"\n", (14, 6), &["no step of A"]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"all\"\nagainst = \"n\"\nper = 0\n", (16, 7), &["per", "out of range"]),
    ("[sweep]\nn = [1, 2]\nkind = [\"spin\", \"mcs\"]\n[lock.m]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\npass = \"all\"\n[[process.step]]\nlock_unlock = \"m\"\ntimes = \"$n\"\n[[line]]\nname = \"l\"\nof = \"all\"\nagainst = \"n\"\nunit = 3\n", (16, 1), &["a line has no key", "unit"]),
];

/// Returns what is wrong with the message for a text.
fn wrong(text: &str, (line, column): (usize, usize), words: &[&str]) -> Option<String> {
    let Err(error) = Script::parse(text) else {
        return Some(format!("taken for good:\n{text}"));
    };
    let shown = error.to_string();
    let place = format!("{line}:{column}: ");
    let lacks = words.iter().find(|word| !shown.contains(**word));
    if shown.starts_with(&place) && lacks.is_none() {
        return None;
    }
    Some(format!("{place}{lacks:?} not in:\n  {shown}\n{text}"))
}

fn check(text: &str, place: (usize, usize), words: &[&str]) {
    if let Some(wrong) = wrong(text, place, words) {
        panic!("{wrong}");
    }
}

#[test]
fn the_good_one_is_good() {
    Script::parse(GOOD).unwrap();
}

#[test]
fn one_mistake_each() {
    let wrong = CASES.iter().filter_map(|Case(from, to, place, words)| {
        assert!(GOOD.contains(from), "{from}");
        wrong(&GOOD.replacen(from, to, 1), *place, words)
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CASES.len() + WHOLE.len() > 120);
}

#[test]
fn whole_scripts() {
    let wrong = WHOLE
        .iter()
        .filter_map(|(text, place, words)| wrong(text, *place, words));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scripts that would fill memory or time exceed limits.
#[test]
fn too_much() {
    let step = "[[process.step]]\nnull = true\n";
    let process = |name: &str, steps: usize| {
        format!("[[process]]\nname = \"{name}\"\n{}", step.repeat(steps))
    };
    check(
        &process("A", 1001),
        (2003, 1),
        &["1001 times [[process.step]]", "at most 1000"],
    );
    let many: String = (0..65).map(|i| process(&format!("P{i}"), 1)).collect();
    check(&many, (257, 1), &["65 times [[process]]", "at most 64"]);
    let swept = format!(
        "passes = \"$n\"\n[sweep]\nn = \"1..10000\"\n{}",
        process("A", 100)
    );
    check(
        &swept,
        (2, 2),
        &["10000 settings of 111 steps", "sweep fewer"],
    );
    check(
        &"#".repeat(2 << 20),
        (1, 1),
        &["2097152 bytes long", "1048576"],
    );
    let long = format!("title = \"{}\"\n", "x".repeat(1001));
    check(&long, (1, 9), &["1001 bytes long", "at most 1000"]);
    let grown = format!(
        "[sweep]\nn = [\"{}\"]\n[[process]]\nname = \"$n$n\"\n",
        "x".repeat(600)
    );
    check(&grown, (4, 8), &["longer than 1000"]);
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Script::parse(&deep).is_err());
    assert!(Script::parse(&format!("{}x = 1", "a.".repeat(100_000))).is_err());
}
