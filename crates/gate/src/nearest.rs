//! Which of some names somebody may have meant.

/// Longer names are not compared.
const LETTERS_MAX: usize = 64;

/// The name among `known` that `name` is most like; none if it is like none. Of several that are
/// equally like it, the first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = name.chars().take(LETTERS_MAX + 1).collect();
    if letters.len() > LETTERS_MAX {
        return None;
    }
    let distances = known.into_iter().map(|other| (distance(&letters, other), other));
    let (distance, nearest) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= letters.len().max(3) / 3).then_some(nearest)
}

/// How many letters must be put in, left out or changed to make `other` of `letters`.
fn distance(letters: &[char], other: &str) -> usize {
    let mut before: Vec<usize> = (0..=letters.len()).collect();
    for (at, wanted) in other.chars().enumerate() {
        let mut row = vec![at + 1];
        for (index, &letter) in letters.iter().enumerate() {
            let changed = before[index] + usize::from(letter != wanted);
            row.push(changed.min(before[index + 1] + 1).min(row[index] + 1));
        }
        before = row;
    }
    before[letters.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_through_and_another_word_is_not() {
        let known = ["race", "race_top", "deadlock", "format"];
        assert_eq!(nearest("rase", known), Some("race"));
        assert_eq!(nearest("dedlock", known), Some("deadlock"));
        assert_eq!(nearest("formats", known), Some("format"));
        assert_eq!(nearest("leak", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"race".repeat(100), known), None);
    }
}
