//! What is asked about a predicate over states.

/// Around the whole of a predicate: what is asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    /// Is there a state that meets it?
    Possibly,
    /// Has every path a state that meets it?
    Definitely,
    /// Do all states meet it? Broken by one that meets its opposite.
    Always,
    /// Does no state meet it? Broken by one that does.
    Never,
}

impl Modality {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Possibly, Self::Definitely, Self::Always, Self::Never];

    /// How it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Possibly => "possibly",
            Self::Definitely => "definitely",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// Whether it says what should hold, and a state can break it.
    #[must_use]
    pub const fn is_rule(self) -> bool {
        match self {
            Self::Possibly | Self::Definitely => false,
            Self::Always | Self::Never => true,
        }
    }
}
