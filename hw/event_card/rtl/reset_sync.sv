// A reset for another clock: it begins at once and ends with that clock. So the
// one net is an asynchronous reset here, and a synchronous one elsewhere.
/* verilator lint_off SYNCASYNCNET */
module reset_sync (
    input  logic clk,
    input  logic rst_n_in,
    output logic rst_n
);
  logic first;

  always_ff @(posedge clk or negedge rst_n_in) begin
    if (!rst_n_in) begin
      first <= 1'b0;
      rst_n <= 1'b0;
    end else begin
      first <= 1'b1;
      rst_n <= first;
    end
  end
endmodule
