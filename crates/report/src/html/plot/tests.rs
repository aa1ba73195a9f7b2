use super::*;

fn page(points: &[(f64, f64)], log: bool) -> String {
    let axis = |name: &str| Axis {
        log,
        ..Axis::new(name, "us")
    };
    let figure = Plot {
        title: "A <figure>".to_owned(),
        text: vec![],
        x: axis("x"),
        y: axis("y"),
        curves: vec![Curve {
            name: "c & d".to_owned(),
            style: Style::Line,
            points: points.iter().map(|&(x, y)| Point::new(x, y)).collect(),
            is_of_previous: false,
        }],
    };
    let mut page = String::new();
    plot(&mut page, "f", &figure).unwrap();
    page
}

#[test]
fn points_lie_where_they_should() {
    let drawn = page(&[(0.0, 0.0), (50.0, 10.0), (100.0, 20.0)], false);
    let path = drawn.split("class=\"curve c0\" d=\"").nth(1).unwrap();
    let path = &path[..path.find('"').unwrap()];
    let places: Vec<(f64, f64)> = path[1..]
        .split('L')
        .map(|p| {
            let (x, y) = p.split_once(' ').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        })
        .collect();
    // The middle tick lies midway between the others; y increases upwards.
    assert_eq!(places.len(), 3);
    assert!((places[1].0 - f64::midpoint(places[0].0, places[2].0)).abs() < 0.2);
    assert!((places[1].1 - f64::midpoint(places[0].1, places[2].1)).abs() < 0.2);
    assert!(places[0].1 > places[2].1);
    assert!(
        (places[0].0 - BORDERS[0]).abs() < 0.2,
        "zero is at the axis"
    );
    for label in [">0<", ">20<", ">100<"] {
        assert!(drawn.contains(label), "{label}");
    }
    assert!(drawn.contains("A &lt;figure&gt;") && drawn.contains("c &amp; d"));
}

#[test]
fn odd_values_are_left_out() {
    let odd = [
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (2.0, 3.0),
        (-1.0, 5.0),
    ];
    for log in [false, true] {
        let drawn = page(&odd, log);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
    assert!(page(&[], false).contains("nothing to draw"));
    assert!(page(&[(1.0, 7.0)], false).contains("curve"));
    let factors = page(&[(1.0, 1e-9), (1e6, 1e9)], true);
    assert!(
        factors.contains(">1e-8<") && factors.contains(">1e8<"),
        "{factors}"
    );
}
