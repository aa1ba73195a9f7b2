use super::*;

fn burst(times: &[(f64, f64)]) -> Burst {
    let samples = times.iter().map(|&(mix_ns, reference_ns)| Sample {
        mix_ns,
        reference_ns,
        taken_off: TakenOff::No,
    });
    Burst {
        begun_ns: 0.0,
        late_ns: 0.0,
        cpu: None,
        samples: samples.collect(),
    }
}

#[test]
fn a_tick_is_a_hit_and_a_slow_while_is_not() {
    let (fast, slow, tick) = ((9e3, 4e3), (22e3, 4e3), (29e3, 4e3));
    let mut times = vec![fast; 10];
    times[5] = tick;
    times.extend([slow; 10]);
    times.extend([fast; 10]);
    let found = apart(&burst(&times));
    assert_eq!(found.hits, [(5, Hit::Short, 20e3)]);
    assert_eq!(found.plain.len(), 30 - 1 - COLD);
    // A hit in the registers, and one during a slow phase.
    let mut times = vec![slow; 10];
    times[4].1 = 30e3;
    times[7].0 = 44e3;
    let found = apart(&burst(&times));
    assert_eq!(found.hits, [(4, Hit::Short, 26e3), (7, Hit::Short, 22e3)]);
}

#[test]
fn a_slow_while_of_two_samples_is_seen_and_one_of_one_is_a_hit() {
    let (fast, slow) = ((9e3, 4e3), (22e3, 4e3));
    let two = [fast, fast, fast, slow, slow, fast, fast];
    assert_eq!(apart(&burst(&two)).hits, []);
    let one = [fast, fast, fast, slow, fast, fast];
    assert_eq!(apart(&burst(&one)).hits, [(3, Hit::Short, 13e3)]);
}

#[test]
fn the_mark_decides_who_it_was() {
    let mut b = burst(&[(9e3, 4e3); 8]);
    b.samples[3].mix_ns = 4e6;
    assert_eq!(apart(&b).hits, [(3, Hit::Long, 4e6 - 9e3)]);
    b.samples[3].taken_off = TakenOff::Yes;
    b.samples[4].taken_off = TakenOff::Yes; // by next to nothing
    let found = apart(&b);
    assert_eq!(
        found.hits,
        [(3, Hit::Switch, 4e6 - 9e3), (4, Hit::Switch, 0.0)]
    );
    assert_eq!(found.taken_ns(Hit::Switch), 4e6 - 9e3);
    assert_eq!(found.taken_ns(Hit::Short), 0.0);
    // Hits at the ends, and where there is too little for a comparison.
    let mut b = burst(&[(9e3, 4e3); 3]);
    b.samples[0].mix_ns = 50e3;
    b.samples[2].mix_ns = 80e3;
    assert_eq!(apart(&b).hits, [(2, Hit::Short, 30e3)]);
    assert_eq!(apart(&burst(&[(9e3, 4e3)])), Apart::default());
    assert_eq!(apart(&burst(&[])), Apart::default());
}
