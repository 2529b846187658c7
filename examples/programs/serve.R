# Answers the requests of an audit; copy this file beside your program (docs/programs.md).
# Base R alone. The value is a number or a vector of numbers; release(value) returns the same.
serve <- function(release) {
  input <- file("stdin", open = "r")
  number <- function(line, name) as.numeric(sub(paste0('.*"', name, '": ([0-9]+).*'), "\\1", line))
  text <- function(output) {
    numbers <- ifelse(is.finite(output), sprintf("%.17g", output), "null")
    if (length(output) == 1) numbers else paste0("[", paste(numbers, collapse = ", "), "]")
  }
  while (length(line <- readLines(input, n = 1)) > 0) {
    written <- sub('.*"value": (\\[[^]]*\\]|[^,}]*).*', "\\1", line)
    value <- as.numeric(strsplit(gsub("[][ ]", "", written), ",")[[1]])
    set.seed(number(line, "seed") %% 2147483647)
    outputs <- errors <- rep("null", number(line, "runs"))
    for (run in seq_along(outputs)) tryCatch(
      outputs[run] <- text(release(value)),
      error = function(failure) errors[run] <<- encodeString(conditionMessage(failure), quote = '"')
    )
    joined <- function(texts) paste(texts, collapse = ", ")
    cat(sprintf('{"outputs": [%s], "errors": [%s]}', joined(outputs), joined(errors)), "\n", sep = "")
    flush(stdout())
  }
}
