//! The protocol under all interleavings, and with each ordering weakened.

use super::*;

fn explore(body: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

#[test]
fn drop_with_two_segments() {
    explore(|| {
        run::<SOUND_CELLS>(Overflow::Drop, 2, (6, false), 3, || true);
    });
}

#[test]
fn drop_of_wide_events() {
    explore(|| {
        run::<SOUND>(Overflow::Drop, 2, (3, true), 2, || true);
    });
}

#[test]
fn grow_to_two_segments() {
    explore(|| {
        run::<SOUND>(Overflow::Grow, 2, (5, false), 2, || true);
    });
}

#[test]
fn overwrite_with_two_segments() {
    explore(|| {
        run::<SOUND>(Overflow::Overwrite, 2, (6, false), 2, || true);
    });
}

#[test]
fn block_with_two_segments() {
    explore(|| {
        run::<SOUND_CELLS>(Overflow::Block, 2, (5, false), 0, || true);
    });
}

#[test]
#[should_panic(expected = "sound ring: Use")] // one that is not there yet
fn a_head_published_without_release_is_found() {
    explore(|| {
        run::<WEAK_PUBLISH_HEAD>(Overflow::Drop, 2, (2, false), 2, || true);
    });
}

#[test]
#[should_panic(expected = "sound ring: Use")] // one that is not there yet
fn a_head_observed_without_acquire_is_found() {
    explore(|| {
        run::<WEAK_OBSERVE_HEAD>(Overflow::Drop, 2, (2, false), 2, || true);
    });
}

#[test]
#[should_panic]
fn a_tail_published_without_release_is_found() {
    explore(|| {
        run::<WEAK_PUBLISH_TAIL>(Overflow::Drop, 2, (6, false), 3, || true);
    });
}

#[test]
#[should_panic]
fn a_tail_observed_without_acquire_is_found() {
    explore(|| {
        run::<WEAK_OBSERVE_TAIL>(Overflow::Drop, 2, (6, false), 3, || true);
    });
}

#[test]
#[should_panic]
fn an_overwrite_without_its_fence_is_found() {
    explore(|| {
        run::<WEAK_FENCE_OVERWRITE>(Overflow::Overwrite, 2, (6, false), 2, || true);
    });
}

#[test]
#[should_panic]
fn a_validation_without_its_fence_is_found() {
    explore(|| {
        run::<WEAK_FENCE_VALIDATE>(Overflow::Overwrite, 2, (6, false), 2, || true);
    });
}
