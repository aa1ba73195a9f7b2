//! Checks whether parameters describe a machine.

use undertick_clock::wide::Shape;

use super::{
    BadParameters, Clock, Cms, Contention, Interrupts, Messages, Parameters, Reference, Scheduling,
    System, Topology,
};

/// Maximum time, us: a time above a minute is a mistake in the unit.
const MOST_US: f64 = 60e6;

type Checked = Result<(), BadParameters>;

fn bad(what: impl Into<String>) -> BadParameters {
    BadParameters(what.into())
}

/// Checks that all are times, us: from 0 on and finite.
fn times(section: &str, named: &[(&str, f64)]) -> Checked {
    for &(name, us) in named {
        if !(0.0..=MOST_US).contains(&us) {
            return Err(bad(format!(
                "{section}.{name} = {us}: a time from 0 to {MOST_US} us"
            )));
        }
    }
    Ok(())
}

/// As [`times`], and above 0: otherwise time would stand still.
fn positive(section: &str, named: &[(&str, f64)]) -> Checked {
    times(section, named)?;
    match named.iter().find(|(_, us)| *us < 0.001) {
        Some((name, us)) => Err(bad(format!(
            "{section}.{name} = {us}: at least a nanosecond (0.001 us)"
        ))),
        None => Ok(()),
    }
}

impl Parameters {
    /// Checks whether these describe a machine; for parameters that were changed.
    ///
    /// # Errors
    /// The name of the first that does not, and the reason.
    pub fn check(&self) -> Result<(), BadParameters> {
        self.topology.check()?;
        self.clock.check()?;
        self.reference.check()?;
        self.cm.check()?;
        self.staros.check("staros")?;
        self.medusa.check("medusa")?;
        let (work, clusters) = (&self.workload, self.topology.clusters);
        if work.clock >= self.topology.clocks.len() {
            return Err(bad(format!(
                "workload.clock = {}: no such clock",
                work.clock
            )));
        }
        match work
            .reader_clusters
            .iter()
            .find(|&&c| c == 0 || c > clusters)
        {
            Some(none) => Err(bad(format!("workload.reader_clusters: no cluster {none}"))),
            None => Ok(()),
        }
    }
}

impl Topology {
    fn check(&self) -> Checked {
        if !(1..=10_000).contains(&self.clusters) {
            return Err(bad("topology.clusters: from 1 to 10000"));
        }
        if !(1..=1_000).contains(&self.cms_per_cluster) {
            return Err(bad("topology.cms_per_cluster: from 1 to 1000"));
        }
        if !(1..=64).contains(&self.intercluster_buses) {
            return Err(bad("topology.intercluster_buses: from 1 to 64"));
        }
        if self.clocks.is_empty() {
            return Err(bad("topology.clocks: at least one"));
        }
        let here = |cluster, cm| {
            (1..=self.clusters).contains(&cluster) && (1..=self.cms_per_cluster).contains(&cm)
        };
        match self.clocks.iter().find(|c| !here(c.cluster, c.cm)) {
            Some(c) => Err(bad(format!(
                "topology.clocks: {}: there is no Cm {} in a cluster {}",
                c.name, c.cm, c.cluster
            ))),
            None => Ok(()),
        }
    }
}

impl Clock {
    fn check(&self) -> Checked {
        let ns = self.tick_us * 1e3;
        if !(1.0..=1e9).contains(&ns) || (ns - ns.round()).abs() > 1e-6 {
            return Err(bad(format!(
                "clock.tick_us = {}: a whole number of ns, from 0.001 us to 1 s",
                self.tick_us
            )));
        }
        Shape::new(self.word_bits, self.words)
            .map(|_| ())
            .map_err(|e| bad(format!("clock: {e}")))
    }
}

impl Reference {
    fn check(&self) -> Checked {
        times(
            "reference",
            &[
                ("issue", self.issue),
                ("slocal", self.slocal),
                ("map_bus", self.map_bus),
                ("own_kmap_out", self.own_kmap_out),
                ("intercluster_bus", self.intercluster_bus),
                ("memory", self.memory),
                ("own_kmap_back", self.own_kmap_back),
            ],
        )?;
        let needed = [
            ("far_kmap", self.far_kmap),
            ("near_kmap", self.near_kmap),
            ("local", self.local),
        ];
        positive("reference", &needed)
    }
}

impl Cms {
    fn check(&self) -> Checked {
        for (name, share) in [
            ("speed_range", self.speed_range),
            ("work_scatter", self.work_scatter),
        ] {
            // Ten standard deviations below the mean must still be a time.
            if !(0.0..=0.1).contains(&share) {
                return Err(bad(format!("cm.{name} = {share}: from 0 to 0.1")));
            }
        }
        times(
            "cm",
            &[
                ("prepared_word", self.prepared_word),
                ("accessed_word", self.accessed_word),
            ],
        )?;
        positive("cm", &[("turn", self.turn), ("null", self.null)])
    }
}

impl System {
    fn check(&self, name: &str) -> Checked {
        times(
            name,
            &[
                ("store", self.store),
                ("leg_scatter", self.leg_scatter),
                ("signal", self.signal),
            ],
        )?;
        positive(name, &[("reading", self.reading), ("poll", self.poll)])?;
        if let Contention::Retry {
            contexts,
            again,
            refused,
        } = self.contention
        {
            let section = format!("{name}.contention");
            if contexts == 0 {
                return Err(bad(format!("{section}.contexts: at least one")));
            }
            times(&section, &[("refused", refused)])?;
            positive(&section, &[("again", again)])?;
        }
        if let Some(interrupts) = self.interrupts {
            interrupts.check(&format!("{name}.interrupts"))?;
        }
        self.messages.check(&format!("{name}.messages"))?;
        self.scheduling.check(&format!("{name}.scheduling"))
    }
}

impl Interrupts {
    fn check(self, section: &str) -> Checked {
        positive(
            section,
            &[("period_us", self.period_us), ("handler", self.handler)],
        )?;
        times(
            section,
            &[
                ("handler_scatter", self.handler_scatter),
                ("skew", self.skew),
            ],
        )?;
        // Ten standard deviations above the mean, and late: it must still end before the next.
        if self.handler + 10.0 * self.handler_scatter + self.skew >= self.period_us {
            return Err(bad(format!(
                "{section}: the handler must end before the next interrupt"
            )));
        }
        Ok(())
    }
}

impl Messages {
    fn check(self, section: &str) -> Checked {
        times(
            section,
            &[
                ("kmap_piece", self.kmap_piece),
                ("kmap_gap", self.kmap_gap),
                ("word", self.word),
                ("kmap_word", self.kmap_word),
            ],
        )?;
        if self.capacity == 0 {
            return Err(bad(format!("{section}.capacity: at least one")));
        }
        positive(section, &[("send", self.send), ("receive", self.receive)])
    }
}

impl Scheduling {
    fn check(self, section: &str) -> Checked {
        times(
            section,
            &[
                ("dispatch", self.dispatch),
                ("notify_each", self.notify_each),
            ],
        )?;
        positive(
            section,
            &[
                ("quantum", self.quantum),
                ("wakeup", self.wakeup),
                ("block", self.block),
                ("event", self.event),
                ("sleep", self.sleep),
                ("yield", self.give_way),
            ],
        )
    }
}
