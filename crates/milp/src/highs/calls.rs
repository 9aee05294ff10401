//! The part of HiGHS's C interface that is used. All unsafe code of the planner is in this file.
#![allow(unsafe_code, reason = "a C library has no safe interface")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::Program;

type Handle = *mut c_void;
type Callback = extern "C" fn(c_int, *const c_char, *const c_void, *mut CallbackIn, *mut c_void);
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The beginning of HiGHS's `HighsCallbackDataIn`: all that is written to.
#[repr(C)]
struct CallbackIn {
    user_interrupt: c_int,
}

/// The kinds of callback in which a search can be ended: simplex, interior point, branch and bound.
const INTERRUPTS: [c_int; 3] = [1, 2, 6];
const ROW_WISE: c_int = 2;
const MINIMISE: c_int = 1;

macro_rules! calls {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a loaded library, which stays loaded as long as they can be called.
        pub(super) struct Calls {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }

        impl Calls {
            /// Loads a library and finds all functions in it.
            pub(super) fn load(path: &Path) -> Result<Calls, String> {
                // SAFETY: loading runs the library's initialisers. HiGHS has none but those of C++'s standard library;
                // a user who names another library runs that one's, as with any program that is started.
                let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
                $(
                    // SAFETY: the signatures below are those of `highs_c_api.h` of HiGHS 1.7 and later, with 32-bit
                    // integers; `check` refuses builds with others before any of them is called with one.
                    let $name = *unsafe { library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>($symbol.as_bytes()) }
                        .map_err(|_| format!("it has no {}", $symbol))?;
                )*
                let calls = Calls { $($name,)* _library: library };
                calls.check()?;
                Ok(calls)
            }
        }
    };
}

calls! {
    create = "Highs_create": fn() -> Handle;
    destroy = "Highs_destroy": fn(Handle);
    sizeof_int = "Highs_getSizeofHighsInt": fn(*const c_void) -> c_int;
    set_bool = "Highs_setBoolOptionValue": fn(Handle, *const c_char, c_int) -> c_int;
    set_double = "Highs_setDoubleOptionValue": fn(Handle, *const c_char, f64) -> c_int;
    pass_mip = "Highs_passMip": fn(Handle, c_int, c_int, c_int, c_int, c_int, f64, *const f64, *const f64, *const f64, *const f64,
        *const f64, *const c_int, *const c_int, *const f64, *const c_int) -> c_int;
    pass_lp = "Highs_passLp": fn(Handle, c_int, c_int, c_int, c_int, c_int, f64, *const f64, *const f64, *const f64, *const f64,
        *const f64, *const c_int, *const c_int, *const f64) -> c_int;
    set_solution = "Highs_setSolution": fn(Handle, *const f64, *const f64, *const f64, *const f64) -> c_int;
    set_callback = "Highs_setCallback": fn(Handle, Callback, *mut c_void) -> c_int;
    start_callback = "Highs_startCallback": fn(Handle, c_int) -> c_int;
    run = "Highs_run": fn(Handle) -> c_int;
    model_status = "Highs_getModelStatus": fn(*const c_void) -> c_int;
    info_int = "Highs_getIntInfoValue": fn(*const c_void, *const c_char, *mut c_int) -> c_int;
    info_double = "Highs_getDoubleInfoValue": fn(*const c_void, *const c_char, *mut f64) -> c_int;
    solution = "Highs_getSolution": fn(*const c_void, *mut f64, *mut f64, *mut f64, *mut f64) -> c_int;
}

impl Calls {
    fn check(&self) -> Result<(), String> {
        let model = Model::new(self).ok_or("it cannot make a model")?;
        // SAFETY: the handle is a live model, and the function takes nothing else.
        match unsafe { (self.sizeof_int)(model.handle) } {
            4 => Ok(()),
            size => Err(format!("it was built with integers of {size} bytes, not 4")),
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

/// A program inside HiGHS. Not shared between threads: HiGHS is not made for that.
pub(super) struct Model<'a> {
    calls: &'a Calls,
    handle: Handle,
    columns: usize,
    _not_shared: PhantomData<*mut ()>,
}

impl<'a> Model<'a> {
    pub(super) fn new(calls: &'a Calls) -> Option<Model<'a>> {
        // SAFETY: takes nothing; what it returns is destroyed once, in `drop`.
        let handle = unsafe { (calls.create)() };
        (!handle.is_null()).then_some(Model { calls, handle, columns: 0, _not_shared: PhantomData })
    }

    /// Options that this version does not know are left alone.
    pub(super) fn option_bool(&mut self, name: &str, value: bool) {
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: a live model and a string that ends in a zero, which HiGHS copies.
        unsafe { (self.calls.set_bool)(self.handle, name.as_ptr(), value.into()) };
    }

    /// Options that this version does not know are left alone.
    pub(super) fn option_double(&mut self, name: &str, value: f64) {
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: as above.
        unsafe { (self.calls.set_double)(self.handle, name.as_ptr(), value) };
    }

    /// Hands over a program; returns HiGHS's status.
    pub(super) fn pass(&mut self, program: &Program) -> i32 {
        let columns = &program.columns;
        let cost: Vec<f64> = columns.iter().map(|column| column.cost).collect();
        let lower: Vec<f64> = columns.iter().map(|column| column.lower).collect();
        let upper: Vec<f64> = columns.iter().map(|column| column.upper).collect();
        let whole: Vec<c_int> = columns.iter().map(|column| column.integer.into()).collect();
        let row_lower: Vec<f64> = program.rows.iter().map(|row| row.lower).collect();
        let row_upper: Vec<f64> = program.rows.iter().map(|row| row.upper).collect();
        let mut start = Vec::with_capacity(program.rows.len() + 1);
        let (mut index, mut weight) = (Vec::new(), Vec::new());
        for row in &program.rows {
            start.push(index.len() as c_int);
            for (variable, value) in &row.terms {
                assert!(variable.0 < columns.len(), "a row names a variable of another program");
                index.push(variable.0 as c_int);
                weight.push(*value);
            }
        }
        start.push(index.len() as c_int);
        self.columns = columns.len();
        let sizes = (columns.len() as c_int, program.rows.len() as c_int, index.len() as c_int);
        if whole.iter().any(|&whole| whole != 0) {
            // SAFETY: a live model; the arrays have the lengths that the sizes say, every index is that of a column
            // (checked above), and HiGHS copies them.
            unsafe {
                (self.calls.pass_mip)(
                    self.handle,
                    sizes.0,
                    sizes.1,
                    sizes.2,
                    ROW_WISE,
                    MINIMISE,
                    0.0,
                    cost.as_ptr(),
                    lower.as_ptr(),
                    upper.as_ptr(),
                    row_lower.as_ptr(),
                    row_upper.as_ptr(),
                    start.as_ptr(),
                    index.as_ptr(),
                    weight.as_ptr(),
                    whole.as_ptr(),
                )
            }
        } else {
            // SAFETY: as above.
            unsafe {
                (self.calls.pass_lp)(
                    self.handle,
                    sizes.0,
                    sizes.1,
                    sizes.2,
                    ROW_WISE,
                    MINIMISE,
                    0.0,
                    cost.as_ptr(),
                    lower.as_ptr(),
                    upper.as_ptr(),
                    row_lower.as_ptr(),
                    row_upper.as_ptr(),
                    start.as_ptr(),
                    index.as_ptr(),
                    weight.as_ptr(),
                )
            }
        }
    }

    /// Tells of a solution, which HiGHS checks; one of the wrong length is kept back.
    pub(super) fn start_from(&mut self, values: &[f64]) {
        if values.len() == self.columns {
            // SAFETY: a live model, and as many values as it has columns; null stands for what is not known.
            unsafe {
                (self.calls.set_solution)(self.handle, values.as_ptr(), ptr::null(), ptr::null(), ptr::null())
            };
        }
    }

    /// Searches until the end or until `stop` says so; returns HiGHS's status.
    pub(super) fn run(&mut self, stop: Stop<'_>) -> i32 {
        let stop_pointer: *const Stop<'_> = &raw const stop;
        // SAFETY: a live model. The callback is called during `run` only, while `stop` lives; it is replaced or the
        // model destroyed before another search. HiGHS may call it from its own threads, which `Sync` allows.
        unsafe {
            (self.calls.set_callback)(self.handle, ask, stop_pointer.cast_mut().cast());
            for kind in INTERRUPTS {
                (self.calls.start_callback)(self.handle, kind);
            }
            (self.calls.run)(self.handle)
        }
    }

    pub(super) fn status(&self) -> i32 {
        // SAFETY: a live model.
        unsafe { (self.calls.model_status)(self.handle) }
    }

    pub(super) fn info_int(&self, name: &str) -> Option<i32> {
        let name = CString::new(name).ok()?;
        let mut value = 0;
        // SAFETY: a live model, a string that ends in a zero, and a place for one number.
        let status = unsafe { (self.calls.info_int)(self.handle, name.as_ptr(), &raw mut value) };
        (status == 0).then_some(value)
    }

    pub(super) fn info_double(&self, name: &str) -> Option<f64> {
        let name = CString::new(name).ok()?;
        let mut value = 0.0;
        // SAFETY: as above.
        let status = unsafe { (self.calls.info_double)(self.handle, name.as_ptr(), &raw mut value) };
        (status == 0 && value.is_finite()).then_some(value)
    }

    /// The values of all columns and the duals of all rows.
    pub(super) fn solution(&self, columns: usize, rows: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut values, mut reduced) = (vec![0.0; columns], vec![0.0; columns]);
        let (mut sums, mut duals) = (vec![0.0; rows], vec![0.0; rows]);
        // SAFETY: a live model that was passed a program of so many columns and rows.
        unsafe {
            (self.calls.solution)(
                self.handle,
                values.as_mut_ptr(),
                reduced.as_mut_ptr(),
                sums.as_mut_ptr(),
                duals.as_mut_ptr(),
            );
        }
        (values, duals)
    }
}

impl Drop for Model<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and destroyed here only.
        unsafe { (self.calls.destroy)(self.handle) };
    }
}

extern "C" fn ask(_: c_int, _: *const c_char, _: *const c_void, data_in: *mut CallbackIn, stop: *mut c_void) {
    if data_in.is_null() || stop.is_null() {
        return;
    }
    // SAFETY: `stop` is what `run` passed, which lives until the search ends; `data_in` is HiGHS's own, for this call.
    unsafe {
        let stop: Stop<'_> = *stop.cast::<Stop<'_>>();
        if stop() {
            (*data_in).user_interrupt = 1;
        }
    }
}
