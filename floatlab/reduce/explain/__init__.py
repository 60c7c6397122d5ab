"""Why two results differ, and which computations give an observed result.

Words that the modules share:

* product: the exact product of the inputs;
* result: one of the two arrays to be explained (`problem.Side`);
* sigma: the expected root mean square rounding error of an element;
* limit: the largest error of an element that rounding may cause;
* wrong element: one whose error exceeds the limit;
* usable element: one that is finite and whose exact product is known;
* stray element: one that is NaN or infinite although it should be finite, or that differs from an expected NaN or ∞;
* view: a result, or a sample of its elements, together with the exact product (`problem.View`);
* line: a row or a column;
* a format *holds* a number that it represents exactly;
* replay: a simulated computation, whose numbers are compared with a result bit for bit;
* model: an assumed change of the inputs or sums, such as inputs rounded to bfloat16;
* a *plain* product or computation has no such change;
* fault: an error that rounding does not cause, such as a missing term;
* shift: a bias or a factor;
* way: a computation that reproduces a result bit for bit;
* rearranged product: one that adds other numbers than the terms x·y of an element, such as an FFT.
"""
