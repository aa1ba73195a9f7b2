//! A machine without scatter, and processes that go through lists of acts.
#![allow(dead_code, reason = "each test uses a part of it")]

use undertick_cmstar::engine::Law;
use undertick_cmstar::{
    Act, CmAddress, Machine, Messages, Moment, Os, Parameters, ProcessId, Program, Reference,
    StepInput,
};

/// Goes through a list of acts and stores its inputs.
pub struct List {
    pub acts: Vec<Act>,
    pub input: Vec<StepInput>,
}

impl List {
    pub fn new(acts: impl Into<Vec<Act>>) -> Self {
        Self {
            acts: acts.into(),
            input: Vec::new(),
        }
    }
}

impl Program for List {
    fn next(&mut self, input: StepInput) -> Act {
        self.input.push(input);
        let next = self.input.len() - 1;
        self.acts.get(next).copied().unwrap_or(Act::End)
    }
}

/// Returns parameters without scatter, and without a cost of dispatch.
pub fn exact() -> Parameters {
    let mut parameters = Parameters::published();
    (parameters.cm.speed_range, parameters.cm.work_scatter) = (0.0, 0.0);
    parameters.reference = Reference {
        issue: 9.05,
        slocal: 2.0,
        map_bus: 1.5,
        own_kmap_out: 8.0,
        intercluster_bus: 2.0,
        far_kmap: 10.4,
        memory: 3.0,
        own_kmap_back: 6.0,
        near_kmap: 6.0,
        local: 3.5,
        kmap_law: Law::Fixed,
    };
    let medusa = &mut parameters.medusa;
    (medusa.reading, medusa.poll) = (126.0, 20.0);
    medusa.messages = Messages {
        send: 1_190.0,
        receive: 1_390.0,
        kmap_pieces: 68,
        kmap_piece: 20.0,
        kmap_gap: 0.0,
        word: 10.0,
        kmap_word: 10.0,
        capacity: 16,
    };
    parameters.medusa.leg_scatter = 0.0;
    parameters.medusa.scheduling.dispatch = 0.0;
    parameters
}

pub fn machine(parameters: &Parameters) -> Machine<List> {
    Machine::new(parameters, Os::Medusa, 1)
}

/// Returns the duration of each act of a process, ns.
pub fn times(machine: &Machine<List>, process: ProcessId) -> Vec<u64> {
    let input = &machine.program(process).input;
    input
        .windows(2)
        .map(|w| w[1].now.ns() - w[0].now.ns())
        .collect()
}

/// Returns when a process got its n-th input, us.
pub fn when(machine: &Machine<List>, process: ProcessId, n: usize) -> f64 {
    machine.program(process).input[n].now.us()
}

pub const LIMIT: Moment = Moment::from_s(10);
pub const HERE: CmAddress = CmAddress::new(2, 1);
pub const BESIDE: CmAddress = CmAddress::new(2, 2);

/// Sum of the parts of a reference to another cluster.
pub const FAR_NS: u64 =
    9_050 + 2_000 + 1_500 + 8_000 + 2_000 + 10_400 + 3_000 + 2_000 + 6_000 + 1_500 + 2_000;
/// Sum of the parts until the word is reached.
pub const FAR_SAMPLED_NS: u64 = 9_050 + 2_000 + 1_500 + 8_000 + 2_000 + 10_400 + 3_000;
/// Sum of the parts of a reference within the cluster.
pub const NEAR_NS: u64 = 9_050 + 2_000 + 1_500 + 6_000 + 3_000 + 1_500 + 2_000;
