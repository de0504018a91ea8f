//! How well a node suits a pod: by how much of the storage would be used that its claims would get.

use bindery_model::Name;

use crate::Found;

/// The best score of a node.
pub const SCORE_MAX: i64 = 100;

/// Scores in a shape are given up to this.
const POINT_SCORE_MAX: i64 = 10;

/// What a utilization is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// How much is used, in per cent.
    pub utilization: i64,
    /// What that is worth, up to 10.
    pub score: i64,
}

/// How the score follows from the utilization: linear between points, and level outside of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(Vec<Point>);

/// Why points make no shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapeError {
    /// There is none.
    Empty,
    /// Utilizations do not rise, or are not between 0 and 100.
    Utilization,
    /// A score is not between 0 and 10.
    Score,
}

impl Default for Shape {
    /// The less is used, the better.
    fn default() -> Shape {
        Shape(vec![Point { utilization: 0, score: SCORE_MAX }, Point { utilization: 100, score: 0 }])
    }
}

impl Shape {
    /// The shape that points make.
    pub fn new(points: &[Point]) -> Result<Shape, ShapeError> {
        let rises = points.windows(2).all(|pair| pair[0].utilization < pair[1].utilization);
        if points.is_empty() {
            Err(ShapeError::Empty)
        } else if !rises || points.iter().any(|point| !(0..=100).contains(&point.utilization)) {
            Err(ShapeError::Utilization)
        } else if points.iter().any(|point| !(0..=POINT_SCORE_MAX).contains(&point.score)) {
            Err(ShapeError::Score)
        } else {
            let scale = SCORE_MAX / POINT_SCORE_MAX;
            Ok(Shape(points.iter().map(|point| Point { score: point.score * scale, ..*point }).collect()))
        }
    }

    /// What a utilization is worth.
    fn at(&self, utilization: i64) -> i64 {
        let after = self.0.iter().position(|point| utilization <= point.utilization);
        match after {
            Some(0) => self.0[0].score,
            Some(place) => {
                let (from, to) = (self.0[place - 1], self.0[place]);
                let rise = (to.score - from.score) * (utilization - from.utilization);
                from.score + rise / (to.utilization - from.utilization)
            }
            None => self.0.last().map_or(0, |last| last.score),
        }
    }

    /// The score of a node, by what it has for a pod's claims: the mean over their classes, rounded. Where there are volumes it
    /// is by what is asked of them; else by what is asked of the room for new ones.
    pub fn score(&self, found: &Found<'_>) -> i64 {
        let mut classes: Vec<(&Name, Use)> = Vec::new();
        for binding in &found.bindings {
            let class = of_class(&mut classes, binding.class);
            class.requested_bytes += binding.claim.requested().units();
            class.capacity_bytes += binding.bytes;
        }
        if found.bindings.is_empty() {
            for provision in &found.provisions {
                let Some(room) = provision.room else { continue };
                let class = of_class(&mut classes, provision.claim.class());
                class.requested_bytes += provision.claim.requested().units();
                // All volumes of a class come out of the same room, so it counts once: as it was last found. Where nothing is
                // said of all there is, it is taken to be what one volume can have.
                class.capacity_bytes = room.room.as_ref().or(room.limit()).map_or(0, |room| room.units());
            }
        }
        self.mean(classes.into_iter().map(|(_, used)| used))
    }

    /// The mean over classes of what their use is worth, rounded half away from zero.
    fn mean(&self, classes: impl ExactSizeIterator<Item = Use>) -> i64 {
        let count = classes.len() as i64;
        if count == 0 {
            return 0;
        }
        let sum: i64 = classes.map(|class| self.at(class.utilization())).sum();
        (2 * sum + count) / (2 * count)
    }
}

/// The use of a class. There are few: as many as a pod has claims, at most.
fn of_class<'c, 'a>(classes: &'c mut Vec<(&'a Name, Use)>, class: &'a Name) -> &'c mut Use {
    let at = classes.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
        classes.push((class, Use::default()));
        classes.len() - 1
    });
    &mut classes[at].1
}

/// How much of a class is asked for, and how much there is.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    requested_bytes: i128,
    capacity_bytes: i128,
}

impl Use {
    /// In per cent, rounded down.
    fn utilization(self) -> i64 {
        if self.capacity_bytes <= 0 || self.requested_bytes > self.capacity_bytes {
            return 100;
        }
        i64::try_from(self.requested_bytes * 100 / self.capacity_bytes).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's table: what is asked for of 100 in each class, and the score.
    #[test]
    fn the_score_is_the_mean_over_classes() {
        let shape = |points: &[(i64, i64)]| {
            let points = points.iter().map(|&(utilization, score)| Point { utilization, score });
            Shape::new(&points.collect::<Vec<_>>()).expect("a shape")
        };
        let (default, custom) = (&shape(&[(0, 10), (100, 0)]), &shape(&[(50, 0), (80, 3), (100, 5)]));
        assert_eq!(*default, Shape::default());
        let cases: [(&Shape, &[i128], i64); 18] = [
            (default, &[0], 100),
            (default, &[30], 70),
            (default, &[50], 50),
            (default, &[100], 0),
            (default, &[0, 0], 100),
            (default, &[0, 30], 85),
            (default, &[30, 30], 70),
            (default, &[30, 60], 55),
            (default, &[50, 50], 50),
            (default, &[50, 100], 25),
            (default, &[100, 100], 0),
            (custom, &[0, 0], 0),
            (custom, &[0, 30], 0),
            (custom, &[30, 30], 0),
            (custom, &[30, 60], 5),
            (custom, &[50, 100], 25),
            (custom, &[90, 90], 40),
            (custom, &[100, 100], 50),
        ];
        for (shape, requested, score) in cases {
            let uses = requested.iter().map(|&requested_bytes| Use { requested_bytes, capacity_bytes: 100 });
            assert_eq!(shape.mean(uses), score, "{shape:?}, {requested:?} of 100 asked for");
        }
    }

    #[test]
    fn what_there_is_not_counts_as_used_up() {
        let shape = Shape::default();
        let uses = [(1, 0), (2, 1), (0, 0)];
        for (requested_bytes, capacity_bytes) in uses {
            let class = Use { requested_bytes, capacity_bytes };
            assert_eq!(shape.mean([class].into_iter()), 0, "{class:?}");
        }
        assert_eq!(shape.mean([].into_iter()), 0);
    }

    #[test]
    fn points_that_make_no_shape_are_refused() {
        let shape = |points: &[(i64, i64)]| {
            Shape::new(&points.iter().map(|&(utilization, score)| Point { utilization, score }).collect::<Vec<_>>())
        };
        assert_eq!(shape(&[]), Err(ShapeError::Empty));
        assert_eq!(shape(&[(10, 1), (10, 2)]), Err(ShapeError::Utilization));
        assert_eq!(shape(&[(0, 1), (101, 2)]), Err(ShapeError::Utilization));
        assert_eq!(shape(&[(0, 11)]), Err(ShapeError::Score));
    }
}
