define void @kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" {
entry:
  %v3 = getelementptr ptr, ptr %buffers, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v11 = getelementptr ptr, ptr %buffers, i64 0
  %v12 = load ptr, ptr %v11, align 8
  br label %start
start:
  br label %loop1
loop1:
  %v1 = phi i64 [ 0, %start ], [ %v9, %loop1 ]
  %v2 = phi <16 x float> [ splat (float 0x0000000000000000), %start ], [ %v8, %loop1 ]
  %v5 = mul i64 %v1, 16
  %v6 = getelementptr float, ptr %v4, i64 %v5
  %v7 = load <16 x float>, ptr %v6, align 4
  %v8 = fadd <16 x float> %v2, %v7
  %v9 = add nsw i64 %v1, 1
  %v10 = icmp slt i64 %v9, 3
  br i1 %v10, label %loop1, label %done2
done2:
  %v13 = shufflevector <16 x float> %v8, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v14 = shufflevector <16 x float> %v8, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v15 = fadd <8 x float> %v13, %v14
  %v16 = shufflevector <8 x float> %v15, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v17 = shufflevector <8 x float> %v15, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v18 = fadd <4 x float> %v16, %v17
  %v19 = shufflevector <4 x float> %v18, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v20 = shufflevector <4 x float> %v18, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v21 = fadd <2 x float> %v19, %v20
  %v22 = extractelement <2 x float> %v21, i64 0
  %v23 = extractelement <2 x float> %v21, i64 1
  %v24 = fadd float %v22, %v23
  store float %v24, ptr %v12, align 4
  ret void
}
