//! The outcome as the document that is printed.

use undertick_report::calibrate::{
    Calibrate, Correlations, Culled, Dose, Method as Shown, density_of,
};

use super::{Method, Outcome, Request};

impl Outcome {
    /// The document for JSON and the terminal.
    #[must_use]
    pub fn document(&self, request: &Request) -> Calibrate {
        Calibrate {
            schema_version: 1,
            clock: request.clock.clock().name().into(),
            load: request.load.to_string(),
            methods: (self.methods.iter()).map(|m| self.method(m)).collect(),
            chosen: self.chosen.into(),
            why: self.why.clone(),
            granularity_ns: self.granularity_ns,
            n: self.n,
            culled: Culled {
                descheduled: self.descheduled,
                ratio: self.unexplained,
            },
            cost_empty: self.cost_empty.clone(),
            cost_dosed: self.cost_dosed.clone(),
            sampler_perturbation: self.sampler_perturbation.clone(),
            sampler_slowdown: self.sampler_slowdown.clone(),
            sampler_distance_ns: self.sampler_distance_ns,
            uncorrected: density_of(&self.uncorrected_ns, self.granularity_ns),
            notes: self.notes(),
        }
        .without_impossible()
    }

    fn method(&self, m: &Method) -> Shown {
        let ns = self.ns_per_tick;
        let c = &m.correlations;
        Shown {
            method: m.name.into(),
            bias: m.doses[0].bias.clone(),
            k: m.k.clone(),
            k_uncut: m.k_uncut.clone(),
            correlations: Correlations {
                s1_ns: c.s1 * ns,
                s3_ns: c.s3 * ns,
                s4_ns: c.s4 * ns,
                r13: c.r13,
                r34: c.r34,
                r14: c.r14,
                r13_by_step: c.r13_by_step,
                r34_by_step: c.r34_by_step,
                k_by_equation_5: c.k_of_pairs(),
            },
            doses: (m.doses.iter())
                .map(|at| Dose {
                    dose_ns: at.dose_ns,
                    bias: at.bias.clone(),
                })
                .collect(),
            corrected: density_of(&m.corrected_ns, self.granularity_ns),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.has_mark {
            notes.push(
                "this kernel or C library has no rseq: intervals during which the thread was \
                 descheduled are known by their length only"
                    .into(),
            );
        }
        if self.sampler_perturbation.is_none() {
            notes.push("no sampler could be started: Method II was not tested".into());
        }
        let twice_the_step = 2.0 * self.granularity_ns;
        if self.cost_empty.value < twice_the_step {
            notes.push(format!(
                "one reading's cost is below two steps of this clock ({:.0} ns): single results \
                 are 0 or a whole step, means are what can be known",
                self.granularity_ns
            ));
        }
        notes
    }
}
