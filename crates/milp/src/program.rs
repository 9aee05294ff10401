//! What is to be solved.

/// A column of a [`Program`], by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variable(pub usize);

/// A variable: its cost, its range, and whether it must be whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// What one unit of it adds to the objective.
    pub cost: f64,
    /// The least value.
    pub lower: f64,
    /// The largest value; may be infinite.
    pub upper: f64,
    /// Whether only whole values are allowed.
    pub integer: bool,
}

/// A constraint: a weighted sum within a range, of which one end may be infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The least value of the sum.
    pub lower: f64,
    /// The largest value of the sum.
    pub upper: f64,
    /// The weights; each variable at most once.
    pub terms: Vec<(Variable, f64)>,
}

/// A linear program to be minimised, some of whose variables may have to be whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The variables.
    pub columns: Vec<Column>,
    /// The constraints.
    pub rows: Vec<Row>,
}

impl Program {
    /// Adds a variable that may be any number of its range.
    pub fn continuous(&mut self, cost: f64, lower: f64, upper: f64) -> Variable {
        self.columns.push(Column { cost, lower, upper, integer: false });
        Variable(self.columns.len() - 1)
    }

    /// Adds a variable that must be whole.
    pub fn integer(&mut self, cost: f64, lower: f64, upper: f64) -> Variable {
        self.columns.push(Column { cost, lower, upper, integer: true });
        Variable(self.columns.len() - 1)
    }

    /// The sum must be at least this.
    pub fn at_least(&mut self, terms: &[(Variable, f64)], lower: f64) {
        self.rows.push(Row { lower, upper: f64::INFINITY, terms: terms.to_vec() });
    }

    /// The sum must be at most this.
    pub fn at_most(&mut self, terms: &[(Variable, f64)], upper: f64) {
        self.rows.push(Row { lower: f64::NEG_INFINITY, upper, terms: terms.to_vec() });
    }

    /// The sum must be exactly this.
    pub fn equal(&mut self, terms: &[(Variable, f64)], value: f64) {
        self.rows.push(Row { lower: value, upper: value, terms: terms.to_vec() });
    }

    /// The same program with every variable continuous.
    pub fn relaxed(&self) -> Program {
        let mut relaxed = self.clone();
        for column in &mut relaxed.columns {
            column.integer = false;
        }
        relaxed
    }

    /// The objective at these values.
    pub fn objective(&self, values: &[f64]) -> f64 {
        self.columns.iter().zip(values).map(|(column, value)| column.cost * value).sum()
    }

    /// Whether these values keep every range, within `tolerance`, and are whole where they must be.
    pub fn is_met(&self, values: &[f64], tolerance: f64) -> bool {
        let within =
            |value: f64, lower: f64, upper: f64| value >= lower - tolerance && value <= upper + tolerance;
        let columns = self.columns.iter().zip(values).all(|(column, &value)| {
            within(value, column.lower, column.upper)
                && !(column.integer && (value - value.round()).abs() > tolerance)
        });
        let rows = self.rows.iter().all(|row| {
            let sum = row
                .terms
                .iter()
                .map(|(variable, weight)| values.get(variable.0).copied().unwrap_or(f64::NAN) * weight)
                .sum();
            within(sum, row.lower, row.upper)
        });
        values.len() == self.columns.len() && columns && rows
    }
}
