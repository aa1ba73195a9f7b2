use super::*;

fn begins_of(chains: &[&[i64]]) -> Begins {
    let mut begins = Begins::default();
    for chain in chains {
        chain.iter().for_each(|&reading| begins.push(reading));
        begins.next_chain();
    }
    begins
}

/// 10 000 readings of one chain: at 8192 one in two stays, and again at 8192 kept one in four.
#[test]
fn memory_is_bounded() {
    let mut begins = Begins::default();
    let readings: Vec<i64> = (0..10_000).collect();
    begins.extend(&readings[..3000]);
    begins.extend(&readings[3000..]);
    assert_eq!(begins.first, readings[..MOST]);
    assert_eq!(begins.thinned_by, 1);
    assert!(
        begins
            .thinned
            .iter()
            .zip(0..)
            .all(|(&kept, i)| kept == 2 * i)
    );
    assert_eq!(begins.thinned.len(), 5000);
    for i in 10_000..1_000_000 {
        begins.push(i);
    }
    assert_eq!((begins.first.len(), begins.thinned_by), (MOST, 7));
    assert!(
        begins
            .thinned
            .iter()
            .zip(0..)
            .all(|(&kept, i)| kept == 128 * i)
    );
    // As many chains as there may be readings: they show nothing, and take no more room.
    let mut begins = Begins::default();
    for i in 0..100_000 {
        begins.push(i);
        begins.next_chain();
    }
    assert!(begins.first.len() <= MOST && begins.thinned.len() <= MOST);
    assert_eq!(begins.lock(1.0, 0.5, 100_000), None);
}

#[test]
fn chains_are_put_together_alike_thinned() {
    let mut long = Begins::default();
    (0..10_000).for_each(|i| long.push(i));
    let short = begins_of(&[&[1, 2, 3], &[5, 6]]);
    let mut both = short.clone();
    both.merge(long.clone());
    assert_eq!(both.thinned_by, 1);
    assert_eq!(both.thinned[..7], [1, 3, BREAK, 5, BREAK, 0, 2]);
    assert_eq!(both.first[..8], [1, 2, 3, BREAK, 5, 6, BREAK, 0]);
    assert_eq!(both.first.len(), MOST);
    long.merge(short);
    assert_eq!(long.thinned[5000..], [BREAK, 1, 3, BREAK, 5, BREAK]);
}

/// Turns of 10 steps but one of 17, and a break.
#[test]
fn turns_that_differ_belong_to_none() {
    let mut at = 0;
    let mut readings = Vec::new();
    for i in 0..40 {
        readings.push(at);
        at += if i == 20 { 17 } else { 10 };
    }
    readings.push(BREAK);
    (0..5).for_each(|i| readings.push(1000 + 10 * i));
    let walk = walk_of(&readings, 1).unwrap();
    let facts = walk.facts().unwrap();
    assert_eq!((walk.pieces(), facts.cycles), (3, 20 + 18 + 4));
    assert_eq!(facts.multiples[0], 10.0);
    // With too few there is none.
    assert!(walk_of(&readings[..FEW_TURNS], 1).is_none());
    assert!(walk_of(&readings[..=FEW_TURNS], 1).is_some());
}

/// Steps of 24.45 ticks, which show 24 or 25, in one chain after another.
#[test]
fn steps_are_counted_from_the_first_of_a_chain() {
    let steps = [0, 1, 2, 40, 41, 1_000_000, 1_000_003];
    let shown = |steps: i64| (steps as f64 * 24.45).floor() as i64 + 77;
    let mut readings: Vec<i64> = steps.iter().map(|&step| shown(step)).collect();
    readings.extend([BREAK, shown(5), shown(4), shown(7)]);
    let found = in_steps(&readings, 24.45);
    assert_eq!(found[..7], steps);
    assert_eq!(found[7..], [BREAK, 0, -1, 2]);
    assert_eq!(in_steps(&[i64::MIN + 1, i64::MAX], 1e-300)[1], i64::MAX);
}

/// 3 steps, 20 steps, 3, 20: two spans a turn, which takes 23.
#[test]
fn a_turn_may_hold_several_sections() {
    let readings: Vec<i64> = (0..200).map(|i| i / 2 * 23 + i % 2 * 3).collect();
    assert!(walk_of(&readings, 1).is_none());
    let facts = walk_of(&readings, 2).unwrap().facts().unwrap();
    assert_eq!((facts.cycles, facts.multiples[0]), (99, 23.0));
    let lock = begins_of(&[&readings]).lock(1.0, 1.5, 200).unwrap();
    assert_eq!(
        (lock.ticks, lock.cycles, lock.may_be_off_steps()),
        (23, 1, 1.0)
    );
}
