use super::*;

fn fill(order: &mut Order<char>, items: &[(i64, char)]) {
    (items.iter()).for_each(|&(ticks, item)| order.push(ticks, item));
}

#[test]
fn two_buffers_read_one_after_the_other() {
    let mut order = Order::new(5);
    let mut out = Vec::new();
    // Rounds at 100, 200, 300; the second buffer is read after the first, so
    // it already holds 201 while the first does not hold 200.
    order.round(100, |_, _| unreachable!("nothing is there"));
    fill(&mut order, &[(10, 'a'), (60, 'b')]);
    fill(&mut order, &[(20, 'c'), (101, 'd')]);
    order.round(200, |t, c| out.push((t, c)));
    assert_eq!(out, [(10, 'a'), (20, 'c'), (60, 'b')]);
    fill(&mut order, &[(100, 'e'), (150, 'f'), (196, 'g')]);
    fill(&mut order, &[(150, 'h'), (201, 'i')]);
    order.round(300, |t, c| out.push((t, c)));
    assert_eq!(out[3..], [(100, 'e'), (101, 'd'), (150, 'f'), (150, 'h')]);
    // In the making when the round at 200 began.
    order.push(195, 'j');
    order.push(149, 'k');
    order.rest(|t, c| out.push((t, c)));
    assert_eq!(out[7..], [(195, 'j'), (196, 'g'), (201, 'i')]);
    assert_eq!(order.too_late, 1);
}
