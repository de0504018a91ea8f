//! Scoring of nodes by the utilization of the storage that a pod's claims would get.

use bindery_model::Name;

use crate::NodeVolumes;

/// The best score of a node.
const SCORE_MAX: i64 = 100;

/// The best score of a point of a shape.
const POINT_SCORE_MAX: i64 = 10;

/// The score of a utilization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapePoint {
    /// The utilization in percent.
    pub utilization: i64,
    /// Its score, from 0 to 10.
    pub score: i64,
}

/// How the score depends on the utilization: linear between points, and constant outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UtilizationShape(Vec<ShapePoint>);

/// Why points are not a valid shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapeError {
    /// There are none.
    Empty,
    /// Utilizations are not increasing, or not between 0 and 100.
    Utilization,
    /// A score is not between 0 and 10.
    Score,
}

impl Default for UtilizationShape {
    /// The lower the utilization, the better.
    fn default() -> UtilizationShape {
        UtilizationShape(vec![
            ShapePoint { utilization: 0, score: SCORE_MAX },
            ShapePoint { utilization: 100, score: 0 },
        ])
    }
}

impl UtilizationShape {
    /// A shape of these points.
    pub fn new(points: &[ShapePoint]) -> Result<UtilizationShape, ShapeError> {
        let is_increasing = points.windows(2).all(|pair| pair[0].utilization < pair[1].utilization);
        if points.is_empty() {
            Err(ShapeError::Empty)
        } else if !is_increasing || points.iter().any(|point| !(0..=100).contains(&point.utilization)) {
            Err(ShapeError::Utilization)
        } else if points.iter().any(|point| !(0..=POINT_SCORE_MAX).contains(&point.score)) {
            Err(ShapeError::Score)
        } else {
            let scale = SCORE_MAX / POINT_SCORE_MAX;
            Ok(UtilizationShape(
                points.iter().map(|point| ShapePoint { score: point.score * scale, ..*point }).collect(),
            ))
        }
    }

    /// The score of a utilization.
    fn at(&self, utilization: i64) -> i64 {
        let after = self.0.iter().position(|point| utilization <= point.utilization);
        match after {
            Some(0) => self.0[0].score,
            Some(at) => {
                let (from, to) = (self.0[at - 1], self.0[at]);
                let rise = (to.score - from.score) * (utilization - from.utilization);
                from.score + rise / (to.utilization - from.utilization)
            }
            None => self.0.last().map_or(0, |last| last.score),
        }
    }

    /// The score of a node: the rounded mean over the classes of a pod's claims. It is based on the
    /// existing volumes; without any, on the capacity for new ones.
    pub fn score(&self, found: &NodeVolumes<'_>) -> i64 {
        let mut classes: Vec<(&Name, Usage)> = Vec::new();
        for binding in &found.bindings {
            let class = of_class(&mut classes, binding.class);
            class.requested_bytes += binding.claim.requested().units();
            class.capacity_bytes += binding.bytes;
        }
        if found.bindings.is_empty() {
            for volume in &found.new_volumes {
                let Some(capacity) = volume.capacity else { continue };
                let class = of_class(&mut classes, volume.claim.class());
                class.requested_bytes += volume.claim.requested().units();
                // All volumes of a class share the same capacity, so it counts once: as last found.
                // Without a total, the limit for one volume counts.
                class.capacity_bytes = capacity.total.as_ref().or(capacity.limit()).map_or(0, |total| total.units());
            }
        }
        self.mean(classes.into_iter().map(|(_, used)| used))
    }

    /// The mean score over classes, rounded half away from zero.
    fn mean(&self, classes: impl ExactSizeIterator<Item = Usage>) -> i64 {
        let count = classes.len() as i64;
        if count == 0 {
            return 0;
        }
        let sum: i64 = classes.map(|class| self.at(class.utilization())).sum();
        (2 * sum + count) / (2 * count)
    }
}

/// The usage of a class. There are few, so a linear search is fine.
fn of_class<'c, 'a>(classes: &'c mut Vec<(&'a Name, Usage)>, class: &'a Name) -> &'c mut Usage {
    let at = classes.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
        classes.push((class, Usage::default()));
        classes.len() - 1
    });
    &mut classes[at].1
}

/// The requested bytes and the capacity of a class.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    requested_bytes: i128,
    capacity_bytes: i128,
}

impl Usage {
    /// In percent, rounded down.
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

    /// Upstream's table: the requests in each class with capacity 100, and the score.
    #[test]
    fn score_is_the_mean_over_classes() {
        let shape = |points: &[(i64, i64)]| {
            let points = points.iter().map(|&(utilization, score)| ShapePoint { utilization, score });
            UtilizationShape::new(&points.collect::<Vec<_>>()).expect("a shape")
        };
        let (default, custom) = (&shape(&[(0, 10), (100, 0)]), &shape(&[(50, 0), (80, 3), (100, 5)]));
        assert_eq!(*default, UtilizationShape::default());
        let cases: [(&UtilizationShape, &[i128], i64); 18] = [
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
            let uses = requested.iter().map(|&requested_bytes| Usage { requested_bytes, capacity_bytes: 100 });
            assert_eq!(shape.mean(uses), score, "{shape:?}, {requested:?} of 100 requested");
        }
    }

    #[test]
    fn missing_capacity_counts_as_fully_used() {
        let shape = UtilizationShape::default();
        let uses = [(1, 0), (2, 1), (0, 0)];
        for (requested_bytes, capacity_bytes) in uses {
            let class = Usage { requested_bytes, capacity_bytes };
            assert_eq!(shape.mean([class].into_iter()), 0, "{class:?}");
        }
        assert_eq!(shape.mean([].into_iter()), 0);
    }

    #[test]
    fn invalid_points_are_rejected() {
        let shape = |points: &[(i64, i64)]| {
            UtilizationShape::new(
                &points.iter().map(|&(utilization, score)| ShapePoint { utilization, score }).collect::<Vec<_>>(),
            )
        };
        assert_eq!(shape(&[]), Err(ShapeError::Empty));
        assert_eq!(shape(&[(10, 1), (10, 2)]), Err(ShapeError::Utilization));
        assert_eq!(shape(&[(0, 1), (101, 2)]), Err(ShapeError::Utilization));
        assert_eq!(shape(&[(0, 11)]), Err(ShapeError::Score));
    }
}
