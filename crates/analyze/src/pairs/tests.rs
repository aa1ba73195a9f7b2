use super::*;

fn pairs(of: &[(i32, i64, i64)]) -> Pairs {
    let mut pairs = Pairs {
        gathering: true,
        ..Pairs::default()
    };
    for &(ring, ts, ticks) in of {
        pairs.ring = ring;
        pairs.add(ts, ticks, 0);
    }
    pairs.settle();
    pairs.ring = 0;
    pairs
}

#[test]
fn own_pairs_lie_on_either_side() {
    let p = pairs(&[(0, 10, 3), (0, 50, 4), (1, 60, 9), (0, 90, 5), (0, 130, 6)]);
    assert_eq!(p.own(55, 80), Some([4, 5]));
    assert_eq!(p.own(5, 8), Some([3, 3]));
    assert_eq!(p.own(140, 150), Some([6, 6]));
    assert_eq!(p.gathered.plain_ticks.n(), 5);
}

#[test]
fn the_samplers_are_the_nearest_of_others() {
    let p = pairs(&[(0, 54, 3), (1, 40, 7), (1, 60, 9), (1, 300, 11)]);
    assert_eq!(p.of_sampler(55, 80), Some([9, 9]));
    assert_eq!(p.of_sampler(45, 260), Some([7, 11]));
    assert_eq!(pairs(&[(0, 1, 1)]).of_sampler(0, 5), None);
}

#[test]
fn descheduled_pairs_and_other_passes_do_not_count() {
    let mut p = pairs(&[]);
    p.add(1, 2, 0);
    p.note(7);
    p.gathering = true;
    p.add(1, 2, 1);
    p.add(1, 3, 2);
    p.note(0);
    p.note(8);
    assert_eq!(
        (p.gathered.plain_ticks.n(), p.gathered.ordered_ticks.n()),
        (1, 1)
    );
    assert_eq!(p.gathered.plain_ticks.max(), Some(3));
}
