use super::*;

#[test]
fn batches_are_fewer_than_512() {
    assert_eq!(
        (batch_size(511), batch_size(512), batch_size(1023)),
        (1, 2, 2)
    );
    assert_eq!((batch_size(1024), batch_size(20_000)), (4, 64));
}

fn sum(values: &[i64]) -> i128 {
    values.iter().map(|&x| i128::from(x)).sum()
}

#[test]
fn few_values_are_batches_of_one() {
    let mut b = Batches::new();
    assert!(!b.extend(&[3, -1, 4], sum));
    assert_eq!(b.sums(), [3, -1, 4]);
    assert_eq!(b.size(), 1);
}

/// 0..1500: 512 ones become 256 pairs at 512; 512 pairs become 256 fours at 1024; 1500 = 375
/// fours. The result does not depend on the stretches in which values arrive.
#[test]
fn doubles_when_full() {
    let values: Vec<i64> = (0..1500).collect();
    for stretch in [1, 7, 512, 1500] {
        let mut b = Batches::new();
        for chunk in values.chunks(stretch) {
            b.extend(chunk, sum);
        }
        assert_eq!(b.size(), 4);
        assert_eq!(b.sums().len(), 375);
        for (i, &s) in b.sums().iter().enumerate() {
            assert_eq!(s, 16 * i as i128 + 6);
        }
    }
}
