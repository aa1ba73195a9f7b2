use super::*;
use crate::script::Script;

/// Places two processes, the second with that place.
fn assigned(
    cpus: &Cpus,
    first: &str,
    second: &str,
    repetition: u32,
) -> Result<Vec<Vec<CpuPlacement>>, String> {
    let text = format!(
        "[[process]]\nname = \"A\"\nreplicas = 2\nplace = \"{first}\"\n[[process.step]]\nnull = true\n\
             [[process]]\nname = \"B\"\nreplicas = 2\nplace = \"{second}\"\n[[process.step]]\nnull = true\n"
    );
    let script = Script::parse(&text).unwrap();
    cpus.assign(&script.settings[0].plan, repetition)
}

fn ones(cpus: &[usize]) -> Vec<CpuPlacement> {
    cpus.iter().map(|&cpu| CpuPlacement::One(cpu)).collect()
}

/// Four CPUs: 0 and 2 form one core, 1 and 3 the other.
#[test]
fn places_by_hand() {
    let cpus = Cpus::from_cores(&[&[0, 2], &[1, 3]]);
    let of = |first, second, repetition| assigned(&cpus, first, second, repetition).unwrap();
    assert_eq!(
        of("any", "any", 0),
        [vec![CpuPlacement::Free; 2], vec![CpuPlacement::Free; 2]]
    );
    // Other processes refer to it, so it is fixed; it moves on with each repetition and
    // replica.
    assert_eq!(
        of("any", "same cpu as A", 0),
        [ones(&[0, 1]), ones(&[0, 1])]
    );
    assert_eq!(
        of("any", "same cpu as A", 3),
        [ones(&[3, 0]), ones(&[3, 0])]
    );
    assert_eq!(
        of("cpu 1", "other cpu than A", 0),
        [ones(&[1, 1]), ones(&[2, 2])]
    );
    assert_eq!(
        of("cpu 3", "other cpu than A", 0),
        [ones(&[3, 3]), ones(&[0, 0])]
    );
    assert_eq!(
        of("cpu 1", "same core as A", 5),
        [ones(&[1, 1]), ones(&[3, 3])]
    );
    assert_eq!(
        of("cpu 1", "other core than A", 0),
        [ones(&[1, 1]), ones(&[2, 2])]
    );
    let among = CpuPlacement::Among(vec![0, 3]);
    assert_eq!(
        of("cpus 0,3", "any", 0),
        [vec![among.clone(), among], vec![CpuPlacement::Free; 2]]
    );
    assert_eq!(
        of("cpus 0,3", "same cpu as A", 0),
        [ones(&[0, 3]), ones(&[0, 3])]
    );
}

/// CPUs 0, 1 and 4 share a cache, 2 and 3 another one; 3 is not allowed.
#[test]
fn clusters_by_hand() {
    let shares = |cpu: usize| match cpu {
        0 | 1 | 4 => vec![0, 1, 4],
        _ => vec![2, 3],
    };
    let groups = clusters(&[0, 1, 2, 4], shares);
    assert_eq!(groups, [vec![0, 1, 4], vec![2]]);
    assert_eq!(clusters(&[3, 7], |_| Vec::new()), [vec![3, 7]], "not known");
    let mut cpus = Cpus::from_cores(&[&[0, 2], &[1, 3], &[4]]);
    cpus.clusters = groups;
    let of = |first, second, repetition| assigned(&cpus, first, second, repetition);
    let among = CpuPlacement::Among(vec![0, 1, 4]);
    assert_eq!(
        of("cluster 0", "cluster 1", 0).unwrap(),
        [vec![among.clone(), among], ones(&[2, 2])]
    );
    assert_eq!(
        of("cluster 0", "same cpu as A", 2).unwrap(),
        [ones(&[4, 0]), ones(&[4, 0])],
        "a place to which another refers is fixed, and moves on"
    );
    let why = of("cluster 2", "any", 0).unwrap_err();
    assert!(
        why.contains("cluster 2") && why.contains("form 2 here"),
        "{why}"
    );
}

/// Each CPU of this machine is in one cluster.
#[test]
fn the_clusters_here() {
    let cpus = Cpus::here().unwrap();
    let mut all = cpus.clusters.concat();
    all.sort_unstable();
    assert_eq!(all, cpus.allowed);
}

#[test]
fn what_the_machine_lacks_is_said() {
    let one = Cpus::from_cores(&[&[5]]);
    let why = |first, second| assigned(&one, first, second, 0).unwrap_err();
    assert!(
        why("any", "other cpu than A").contains("only one"),
        "{}",
        why("any", "other cpu than A")
    );
    assert!(why("any", "same core as A").contains("only one here"));
    assert!(why("any", "other core than A").contains("none"));
    assert!(why("cpu 0", "any").contains("CPU 0; CPUs that can be used here: [5]"));
}

#[test]
fn lists_of_cpus() {
    assert_eq!(list("0,2-4"), [0, 2, 3, 4]);
    assert_eq!(list("7"), [7]);
    assert_eq!(list(""), [0_usize; 0]);
}
