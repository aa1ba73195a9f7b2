use super::super::tests::calibration;
use super::*;

const CLOCK: ClockId = ClockId::Monotonic;

fn here(directory: &Path) -> Kept {
    Kept::in_directory(directory, CLOCK, true).unwrap()
}

#[test]
fn what_is_kept_comes_back_under_the_same_circumstances_alone() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("new");
    let kept = here(&directory);
    assert_eq!(kept.load(), None);
    let measured = calibration(12.0, 5.0);
    kept.keep(&measured);
    assert_eq!(here(&directory).load(), Some(measured.clone()));
    assert_eq!(
        Kept::in_directory(&directory, CLOCK, false).unwrap().load(),
        None
    );
    let other = ClockId::MonotonicRaw;
    assert_eq!(
        Kept::in_directory(&directory, other, true).unwrap().load(),
        None
    );
    type Change = fn(&mut Circumstances);
    let changes: [Change; 5] = [
        |c| c.boot_id.push('0'),
        |c| c.undertick_version.push('0'),
        |c| c.program.bytes += 1,
        |c| c.program.inode += 1,
        |c| c.program.modified_ns += 1,
    ];
    for change in changes {
        let mut kept = here(&directory);
        change(&mut kept.circumstances);
        assert_eq!(kept.load(), None, "{:?}", kept.circumstances);
    }
    // A newer calibration replaces the file.
    kept.keep(&calibration(13.0, 5.0));
    assert_eq!(kept.load(), Some(calibration(13.0, 5.0)));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn what_a_busy_machine_has_blurred_is_measured_anew() {
    let directory = tempfile::tempdir().unwrap();
    let kept = here(directory.path());
    let mut wide = calibration(12.0, 5.0);
    wide.ordered.empty_ns.interval = undertick_units::Interval::new(24.0, 28.0);
    kept.keep(&wide);
    assert_eq!(kept.load(), None);
    // Measured: 7.7 ns [-13.9, 14.5] beside spans of 16.7 ns around nothing.
    let mut below_0 = calibration(7.7, 5.0);
    below_0.plain.dosed_ns.interval = undertick_units::Interval::new(-13.9, 14.5);
    kept.keep(&below_0);
    assert_eq!(kept.load(), None);
    below_0.plain.dosed_ns.interval = undertick_units::Interval::new(-0.1, 14.5);
    kept.keep(&below_0);
    assert!(kept.load().is_some());
}

/// Text, an impossible cost, a link, a fifo: each leads to a new measurement, none to a
/// failure.
#[test]
fn a_file_that_is_none_of_ours_is_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let kept = here(directory.path());
    fs::write(&kept.file, "{\"circumstances\": 1}").unwrap();
    assert_eq!(kept.load(), None);
    let impossible = Contents {
        circumstances: kept.circumstances.clone(),
        calibration: calibration(-12.0, 5.0),
    };
    kept.write(&impossible).unwrap();
    assert_eq!(kept.load(), None);
    kept.keep(&calibration(12.0, 5.0));
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&kept.file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &kept.file).unwrap();
    assert_eq!(kept.load(), None);
    fs::remove_file(&kept.file).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &kept.file, mode).unwrap();
    assert_eq!(kept.load(), None);
}
